package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving/paged"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/serve"
)

// ranks is a model, and what an engine with ranks runs it on.
type ranks struct {
	graph    *modelgraph.Graph
	workload costmodel.Workload
	topology *costmodel.Topology
	question *serve.RankQuestion
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
	if workload.Runtime != costmodel.VLLM && workload.Runtime != costmodel.SGLang {
		return out.Usagef("--log: %s is a plan for %s, and logs of vLLM and SGLang are read", path, workload.Runtime)
	}
	file, err := os.Open(command.Watch.Log)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was read
	found, err := paged.ReadLog(file)
	if err != nil {
		return fmt.Errorf("%s: %w", command.Watch.Log, err)
	}
	fullest := &plan.Devices[0].Predicted
	for i := range plan.Devices {
		if predicted := &plan.Devices[i].Predicted; predicted.DeviceUsedBytes > fullest.DeviceUsedBytes {
			fullest = predicted
		}
	}
	show.Logged(cmd.OutOrStdout(), plan, fullest, found)
	if command.Output == "" {
		return nil
	}
	const near = 0.05
	switch {
	case workload.Runtime != costmodel.VLLM:
		return out.Usagef("-o %s: a log of vLLM alone calibrates; SGLang's cache does not depend on buffers", command.Output)
	case found.Cache < 0 || found.Weights < 0:
		return fmt.Errorf("%s: no calibration without \"Model loading took\" and \"Available KV cache memory\"", command.Watch.Log)
	case math.Abs(float64(found.Weights-fullest.ParamsBytes)) > near*float64(fullest.ParamsBytes):
		return fmt.Errorf("%s: no calibration: its weights are %v and the plan's %v, so that its model or degrees differ", command.Watch.Log, costmodel.Bytes(found.Weights), costmodel.Bytes(fullest.ParamsBytes))
	}
	written := calibration{
		FormatVersion: calibrationVersion, Engine: workload.Runtime, EngineVersion: workload.EngineVersion, GPU: plan.Topology.Devices[0].Name,
		OtherBytes: workload.CalibratedBytes + fullest.ParamsBytes + fullest.KVCacheBytes - found.Weights - found.Cache,
	}
	return out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, written) })
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
	return answer, nil
}

// plan is the plan file of an answer.
func (of *ranks) plan(answer *serve.RankAnswer) *devicemap.Plan {
	workload := answer.Workload(of.workload)
	plan := devicemap.NewServingPlan(of.graph, &workload, of.topology, answer.Placed(of.graph), answer.Predictions(of.topology))
	plan.Stages, plan.KVTokens = answer.Stages(of.graph), answer.Tokens
	objective := &plan.Objective
	objective.Name, objective.Value, objective.LowerBound = "memory", answer.Share, answer.Bound
	objective.Gap = (answer.Share - answer.Bound) / answer.Share
	objective.Status, objective.Bound = "optimal", "every split of the layers in order with as many blocks of the cache"
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
		return err
	}
	plan := of.plan(answer)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) })
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

// ranked lists the degrees of an engine with ranks, the best first.
func (command *estimateCommand) ranked(cmd *cobra.Command, arg string, workload costmodel.Workload, topology *costmodel.Topology) error {
	of, err := readRanks(command.Request, arg, workload, topology)
	if err != nil {
		return err
	}
	best, fault := of.solve(command.Request)
	document := &estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}, Warnings: slices.Concat([]string{}, of.graph.Warnings)}
	document.noneFits(fault)
	var answers []*serve.RankAnswer
	if best != nil {
		answers = append([]*serve.RankAnswer{best}, best.Others...)
		document.Warnings = append(document.Warnings, best.Notes(of.question, of.topology)...)
	}
	for _, answer := range answers {
		document.Rows = append(document.Rows, of.row(answer, command.Again()))
	}
	result := cmd.OutOrStdout()
	if command.JSON || command.Output != "" {
		if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) }); err != nil {
			return err
		}
		result = cmd.ErrOrStderr()
	}
	if command.JSON || fault != nil {
		return fault
	}
	printer := show.New(result, of.graph, best.Workload(of.workload))
	printer.Header(topology, nil)
	show.RankedRows(printer, answers)
	words := slices.Concat([]string{"devmap", "plan", arg}, of.row(best, command.Again()).Flags, []string{"-o", "plan.json"})
	for i := range words {
		words[i] = emit.Shell(words[i])
	}
	show.Next(printer, strings.Join(words, " "))
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return nil
}

// row is an answer as a row of an estimate.
func (of *ranks) row(answer *serve.RankAnswer, flags []string) estimateRow {
	plan := of.plan(answer)
	var more []string
	if share := of.workload.MemFraction; share > 0 {
		more = append(more, "--mem-fraction", strconv.FormatFloat(share, 'f', -1, 64))
	}
	if answer.Set.Experts > 0 {
		more = append(more, "--ep", plan.Workload.EP.String())
	}
	row := estimateRow{
		Strategy: costmodel.DeviceMap, Runtime: of.workload.Runtime, Fits: true, Verdict: plan.Verdict, Batch: 1, TokensPerStep: 1, HeadroomBytes: plan.Devices[0].HeadroomBytes,
		Flags:   slices.Concat([]string{"--runtime", of.workload.Runtime}, flags, []string{"--tp", plan.Workload.TP.String(), "--pp", plan.Workload.PP.String(), "--dp", plan.Workload.DP.String()}, more),
		Context: answer.Set.Context, KVTokens: answer.Tokens,
	}
	for i := range plan.Devices {
		row.PeakAllocatedBytes = append(row.PeakAllocatedBytes, plan.Devices[i].Predicted.PeakAllocatedBytes)
		row.HeadroomBytes = min(row.HeadroomBytes, plan.Devices[i].HeadroomBytes)
	}
	return row
}

// ranked checks a plan of an engine with ranks: its stages, and what each GPU holds.
func (command *checkCommand) ranked(cmd *cobra.Command, arg, path string, read *mapFile) error {
	plan := read.plan
	of, err := readRanks(command.Request, arg, plan.Workload, &plan.Topology)
	if err != nil {
		return err
	}
	var answer *serve.RankAnswer
	report := devicemap.CheckServing(of.graph, len(plan.Topology.Devices), read.flat, read.faults, func(placed devicemap.Map) ([]devicemap.Prediction, *devicemap.Fault) {
		counts, fault := serve.StagesOf(of.graph, placed, of.question.Set.Degrees)
		if fault != nil {
			return nil, fault
		}
		if answer, err = of.question.Given(counts); err != nil {
			return nil, &devicemap.Fault{Message: costmodel.Messagef("%v", err)}
		}
		return answer.Predictions(of.topology), nil
	})
	var notes []string
	if answer != nil {
		notes = answer.Notes(of.question, of.topology)
	}
	notes = append(notes, command.unlikeNotes(cmd, of.graph, plan, report)...)
	if err := command.show(cmd, &judged{graph: of.graph, workload: &of.workload, topology: of.topology, plan: plan}, report, notes); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	if len(report.Faults) > 0 {
		return out.ErrCheck
	}
	return nil
}

// ranked shows a model of an engine with ranks: the bytes of its units, and the cache of a token.
func (command *inspectCommand) ranked(cmd *cobra.Command, arg string, workload costmodel.Workload) error {
	of, err := readRanks(command.Request, arg, workload, &costmodel.Topology{Devices: make([]costmodel.Device, 1)})
	if err != nil {
		return err
	}
	document := inspectOutput{FormatVersion: "devmap.inspect/v1", Model: devicemap.NewServingPlan(of.graph, &workload, of.topology, nil, nil).Model, Warnings: slices.Concat([]string{}, of.graph.Warnings)}
	caches := of.question.PerToken()
	var rows []show.ServedUnit
	for i, layer := 0, 0; i < len(of.graph.Units); i++ {
		row := inspectUnit{Name: of.graph.Units[i].Name, Inputs: []string{}}
		row.count(of.graph, i)
		if of.graph.Units[i].Kind == "decoder-layer" {
			row.KVBytesPerToken = caches[layer]
			layer++
		}
		document.Units = append(document.Units, row)
		rows = append(rows, show.ServedUnit{Name: row.Name, Params: row.Params, Bytes: row.ParamsBytes, Cache: row.KVBytesPerToken, Types: row.Types})
	}
	if command.JSON {
		return devicemap.WriteJSON(cmd.OutOrStdout(), document)
	}
	err = show.ServedUnits(cmd.OutOrStdout(), show.ServedModel{Name: of.graph.Name, Architecture: of.graph.Class, Kind: workload.KVType, Trained: of.question.Model.Trained}, rows)
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return err
}
