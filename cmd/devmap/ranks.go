package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// ranks is a model, and what an engine with ranks runs it on.
type ranks struct {
	graph    *modelgraph.Graph
	workload costmodel.Workload
	topology *costmodel.Topology
	question *serve.RankQuestion
}

// ofRanks reports a plan of an engine with ranks.
func ofRanks(plan *devicemap.Plan) bool {
	return plan != nil && (plan.Workload.Runtime == costmodel.VLLM || plan.Workload.Runtime == costmodel.SGLang)
}

// readRanks reads a model for vLLM or SGLang.
func readRanks(request *ask.Request, arg string, workload costmodel.Workload, topology *costmodel.Topology) (*ranks, error) {
	if load.IsGGUF(arg) {
		return nil, out.Usagef("--runtime %s: %s is a GGUF file: give the model's config.json, or --runtime %s", workload.Runtime, arg, costmodel.LlamaCPP)
	}
	graph, err := ask.ReadModel(arg, ask.ReadingOf(request))
	if err != nil {
		return nil, err
	}
	if request.Calibration != "" {
		calibration, err := readCalibration(request.Calibration)
		if err != nil {
			return nil, err
		}
		workload.CalibratedBytes = calibration.OtherBytes
		if name := topology.Devices[0].Name; calibration.Engine != workload.Runtime || calibration.GPU != name {
			return nil, out.Usagef("--calibration %s: it is of %s on %s, not of %s on %s", request.Calibration, calibration.Engine, calibration.GPU, workload.Runtime, name)
		}
		workload.EngineVersion = cmp.Or(workload.EngineVersion, calibration.EngineVersion)
		if calibration.EngineVersion != workload.EngineVersion {
			return nil, out.Usagef("--calibration %s: it is of release %s, and --engine-version is %s", request.Calibration, calibration.EngineVersion, workload.EngineVersion)
		}
	}
	question, err := serve.RankQuestionOf(graph, &workload, topology)
	if err != nil {
		return nil, out.Usagef("--runtime %s: %w", workload.Runtime, err)
	}
	return &ranks{graph, workload, topology, question}, nil
}

// calibration is devmap.calibration/v1: what a start-up log had beyond its plan.
type calibration struct {
	FormatVersion string `json:"format_version"`
	Engine        string `json:"engine"`
	EngineVersion string `json:"engine_version"`
	GPU           string `json:"gpu"`
	// OtherBytes are bytes of each GPU beyond weights and cache, less the plan's.
	OtherBytes int64 `json:"other_bytes"`
}

// calibrationOf is what a log had beyond a plan, whose GPU with the least cache has the bytes of predicted.
func calibrationOf(plan *devicemap.Plan, predicted *devicemap.Predicted, found *serve.Log) (*calibration, error) {
	const near = 0.05
	workload := &plan.Workload
	switch {
	case workload.Runtime != costmodel.VLLM:
		return nil, out.Usagef("SGLang's cache does not depend on buffers")
	case workload.PP.Count() > 1:
		return nil, out.Usagef("the ranks of a pipeline differ, and the log does not say which has what: take a plan of --pp 1")
	case found.Cache < 0 || found.Weights < 0:
		return nil, errors.New("it lacks \"Model loading took\" or \"Available KV cache memory\"")
	case math.Abs(float64(found.Weights-predicted.ParamsBytes)) > near*float64(predicted.ParamsBytes):
		return nil, fmt.Errorf("its weights are %v and the plan's %v, so that its model or degrees differ", costmodel.Bytes(found.Weights), costmodel.Bytes(predicted.ParamsBytes))
	}
	return &calibration{
		FormatVersion: calibrationVersion, Engine: workload.Runtime, EngineVersion: workload.EngineVersion, GPU: plan.Topology.Devices[0].Name,
		OtherBytes: workload.CalibratedBytes + predicted.ParamsBytes + predicted.KVCacheBytes - found.Weights - found.Cache,
	}, nil
}

const calibrationVersion = "devmap.calibration/v1"

func readCalibration(path string) (*calibration, error) {
	const most = 1 << 16
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	var read calibration
	if err := json.Unmarshal(data, &read, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("--calibration %s: %w: devmap watch PLAN --log FILE -o %s writes one", path, err, path)
	}
	const limit = 1 << 40
	if read.FormatVersion != calibrationVersion || read.OtherBytes < -limit || read.OtherBytes > limit {
		return nil, fmt.Errorf("--calibration %s: it is no %s: devmap watch PLAN --log FILE -o %s writes one", path, calibrationVersion, path)
	}
	return &read, nil
}

// solve finds the answer, or says what does not fit and which changes do.
func (of *ranks) solve(request *ask.Request) (*serve.RankAnswer, error) {
	answer, err := serve.SolveRanks(of.question)
	var none *serve.InfeasibleRanksError
	switch {
	case errors.As(err, &none):
		helps, remedies := ask.ServingChanges(request, of.topology, of.question.Changes())
		return nil, &out.Infeasible{Err: err, Helps: helps, Remedies: remedies}
	case err != nil:
		return nil, out.Usagef("%w", err)
	}
	if used := int(answer.Set.Ranks()); used < len(of.topology.Devices) { // the plan has the GPUs that work
		topology := *of.topology
		topology.Devices = topology.Devices[:used]
		of.topology = &topology
	}
	return answer, nil
}

// plan is the plan file of an answer.
func (of *ranks) plan(answer *serve.RankAnswer) *devicemap.Plan {
	workload := answer.Workload(of.workload)
	plan := devicemap.NewServingPlan(of.graph, &workload, of.topology, answer.Placed(of.graph), answer.Predictions(of.topology))
	plan.Stages, plan.KVTokens = answer.Stages(of.graph), answer.Tokens
	proved(plan, answer.Share, answer.Bound, "every split of the layers in order with as many blocks of the cache")
	plan.Warnings = slices.Concat([]string{}, of.graph.Warnings, answer.Notes(of.question, of.topology))
	return plan
}

// ranked plans for an engine with ranks.
func (command *planCommand) ranked(cmd *cobra.Command, arg string, workload costmodel.Workload, topology *costmodel.Topology) error {
	of, err := readRanks(command.Request, arg, workload, topology)
	if err != nil {
		return err
	}
	answer, err := of.solve(command.Request)
	if err != nil {
		return unreported(cmd, command.Report, err)
	}
	plan := of.plan(answer)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
	if err == nil {
		err = command.reportServed(cmd, plan, of.graph, show.RankedFacts(answer))
	}
	if err != nil || command.JSON {
		return err
	}
	printer := show.New(cmd.ErrOrStderr(), of.graph, plan.Workload)
	printer.Header(topology, nil)
	printer.FirstOf = answer.FirstOf
	printer.Devices(answer.Placed(of.graph), plan.Devices)
	show.Ranked(printer, answer)
	printer.Warnings(plan.Warnings)
	command.next(cmd, plan, written)
	return nil
}

// log compares the start-up log of an engine with its plan.
func (command *watchCommand) log(cmd *cobra.Command, path string) error {
	plan, err := command.plan(cmd, path)
	if err != nil {
		return err
	}
	if command.JSON {
		return out.Usagef("--log prints a table: leave --json out; -o FILE writes the calibration as JSON")
	}
	workload := &plan.Workload
	if !ofRanks(plan) {
		return out.Usagef("--log: %s is a plan for %s, and logs of vLLM and SGLang are read", path, workload.Runtime)
	}
	file, err := os.Open(command.Watch.Log)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was read
	found, err := serve.ReadLog(file)
	if err != nil {
		return fmt.Errorf("%s: %w", command.Watch.Log, err)
	}
	if found.Engine != "" && found.Engine != workload.Runtime {
		return out.Usagef("--log %s: it is of %s, and %s is a plan for %s", command.Watch.Log, found.Engine, path, workload.Runtime)
	}
	if most := plan.Devices[0].CapacityBytes; max(found.Weights, 0)+max(found.Cache, 0) > most {
		return fmt.Errorf("%s: weights and cache are more than the %v of the plan's GPU 0", command.Watch.Log, costmodel.Bytes(most))
	}
	fullest := &plan.Devices[0].Predicted // with the least cache, as the log has
	for i := range plan.Devices {
		if predicted := &plan.Devices[i].Predicted; predicted.KVCacheBytes < fullest.KVCacheBytes {
			fullest = predicted
		}
	}
	show.Logged(cmd.OutOrStdout(), plan, fullest, found)
	if command.Output == "" {
		return nil
	}
	written, err := calibrationOf(plan, fullest, found)
	if err != nil {
		return fmt.Errorf("%s: no calibration: %w", command.Watch.Log, err)
	}
	return out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, written) })
}
