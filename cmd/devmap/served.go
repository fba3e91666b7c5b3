package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

// served is a model, and what llama.cpp runs it on.
type served struct {
	graph    *modelgraph.Graph
	workload costmodel.Workload
	topology *costmodel.Topology
	question serve.Question
}

// readServed reads a model with its draft and its encoder of images.
func readServed(arg string, workload costmodel.Workload, topology *costmodel.Topology) (*served, error) {
	graph, model, err := readGGUF(arg)
	if err != nil {
		return nil, err
	}
	question := serve.Question{Model: model, Devices: serve.DevicesOf(topology)}
	if workload.MMProj != "" {
		file, err := ggufFile("--mmproj", workload.MMProj)
		if err != nil {
			return nil, err
		}
		if question.Encoder, err = serving.EncoderFromGGUF(file); err != nil {
			return nil, err
		}
	}
	if workload.Draft != "" {
		file, err := ggufFile("--draft", workload.Draft)
		if err != nil {
			return nil, err
		}
		if question.Draft, err = serving.FromGGUF(file); err != nil {
			return nil, err
		}
		const most = 128 // common/speculative.cpp: SPEC_VOCAB_MAX_SIZE_DIFFERENCE
		if ours, its := model.Vocabulary, question.Draft.Vocabulary; max(ours-its, its-ours) > most {
			return nil, out.Usagef("--draft %s: its vocabulary has %d tokens, and the model's %d: llama.cpp lets them differ by up to %d", workload.Draft, its, ours, most)
		}
		question.DraftOn = question.Largest()
		workload.DraftGPU = int64(question.DraftOn)
	}
	question.Set = serve.SettingsOf(&workload)
	return &served{graph, workload, topology, question}, nil
}

// serve predicts llama.cpp's own placement, or the one that flags give.
func (command *estimateCommand) serve(cmd *cobra.Command, arg string) error {
	workload, topology, err := ask.ServingOf(command.Request)
	if err != nil {
		return err
	}
	if workload.Runtime != costmodel.LlamaCPP {
		return command.ranked(cmd, arg, workload, topology)
	}
	served, err := readServed(arg, workload, topology)
	if err != nil {
		return err
	}
	question := served.question
	question.DraftOn = -1 // as llama.cpp does it
	given, how, err := command.given(&question)
	if err != nil {
		return err
	}
	served.workload.Context, question.Set.Context = given.Set.Context, given.Set.Context
	served.question.Set.Context = given.Set.Context
	served.question.Set.HostExperts = 0
	best, none := serve.Solve(served.question)
	flags := command.Again()
	if !command.Given("context") {
		flags = append(flags, "--context", strconv.FormatInt(given.Set.Context, 10))
	}
	document := servedEstimate(served, given, best, flags)
	var fault error
	if given.Share > 1 {
		fault = command.misfit(served, given, best, none)
		document.noneFits(fault)
	}
	document.Warnings = append(document.Warnings, given.Notes(&question)...)
	result, err := command.write(cmd, func() *estimateOutput { return document })
	if err != nil {
		return err
	}
	if command.JSON {
		return fault
	}
	printer := show.New(result, served.graph, served.workload)
	devices := given.Predictions(&question, topology)
	printer.Header(topology, nil)
	printer.Devices(given.Placed(served.graph), devices)
	printer.Judged(document.Given.Verdict, devices, devicemap.NewServingPlan(served.graph, &served.workload, topology, given.Placed(served.graph), devices).Imbalance, 0)
	show.Given(printer, &question, given, best, how)
	if best != nil {
		show.Next(printer, planLine(arg, command.Again()))
	}
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return fault
}

// given is the placement to predict, and who chose it.
func (command *estimateCommand) given(question *serve.Question) (answer *serve.Answer, how string, err error) {
	split, err := ask.TensorSplit(command.Request, len(question.Devices))
	if err != nil {
		return nil, "", err
	}
	own, _ := serve.Fit(*question)
	if split == nil && !command.Given("gpu-layers", "host-experts") {
		how = "Split: llama.cpp's own, by free memory (--fit)."
		if own.Share > 1 && question.Model.Experts > 0 {
			how = "Split: by free memory. llama.cpp's own --fit would move experts."
		}
		return own, how, nil
	}
	if question.Set.Context == 0 { // --fit leaves it alone as soon as one of these flags is given
		question.Set.Context = question.Model.Trained
	}
	if split == nil {
		split = question.Free()
	}
	units := question.Model.Units()
	_, counts := serving.Layers(units, split, ask.GPULayers(command.Request, units))
	return question.Given(counts, false), "Split: that of the flags.", nil
}

// misfit is the error for a placement that does not fit, with changes that do.
func (command *estimateCommand) misfit(served *served, given, best *serve.Answer, none error) error {
	worst := 0
	devices := given.Predictions(&served.question, served.topology)
	for i := range devices {
		if devices[i].Share > devices[worst].Share {
			worst = i
		}
	}
	device := &devices[worst]
	err := fmt.Errorf("does not fit: GPU %d needs %v with CUDA's context and the margin of 1 GiB, and has %v", worst, costmodel.Bytes(device.Predicted.DeviceUsedBytes), costmodel.Bytes(device.Budget))
	if none != nil {
		return unserved(command.Request, served, none)
	}
	helps, remedies := ask.ServingChanges(command.Request, served.topology, served.question.Changes())
	return &out.Infeasible{Err: err, Helps: append([]string{"devmap plan: " + best.Summary() + ", fits"}, helps...), Remedies: remedies}
}

// servedEstimate is the document of an estimate: devmap's plan as a row, and the placement in question.
func servedEstimate(served *served, given, best *serve.Answer, flags []string) *estimateOutput {
	row := func(answer *serve.Answer) estimateRow {
		placed := answer.Placed(served.graph)
		devices := answer.Predictions(&served.question, served.topology)
		row := estimateRow{
			Strategy: costmodel.DeviceMap, Runtime: costmodel.LlamaCPP, Fits: answer.Share <= 1, Batch: 1, TokensPerStep: 1, Flags: flags,
			Verdict: devicemap.NewServingPlan(served.graph, &served.workload, served.topology, placed, devices).Verdict,
		}
		row.predicted(devices)
		return row
	}
	document := &estimateOutput{FormatVersion: "devmap.estimate/v1", Rows: []estimateRow{}, Warnings: []string{}}
	if best != nil {
		document.Rows = append(document.Rows, row(best))
	}
	document.Given = &estimateAuto{row(given), given.Placed(served.graph).Flatten(served.graph)}
	document.Given.Flags = []string{} // no flag of plan gives a split
	return document
}

// planned reads what a plan or a map places.
func (command *checkCommand) planned(arg, path string, read *mapFile) (*served, error) {
	if read.plan != nil && read.plan.Workload.Runtime != costmodel.LlamaCPP {
		return nil, out.Usagef("%s is a plan for %s, and llama.cpp alone computes with GGUF files", path, read.plan.Workload.Runtime)
	}
	workload, topology, err := ask.ServingOver(command.Request, read.plan, read.flat)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(serving.CacheTypes(), workload.KVType) {
		return nil, &modelgraph.SyntaxError{File: path, Place: "workload.kv_type", Msg: fmt.Sprintf("%q is unknown (known: %s)", workload.KVType, strings.Join(serving.CacheTypes(), ", "))}
	}
	for _, other := range []struct{ flag, name string }{{"mmproj", workload.MMProj}, {"draft", workload.Draft}} {
		if _, err := os.Stat(other.name); other.name != "" && err != nil && !command.Given(other.flag) {
			return nil, &modelgraph.SyntaxError{File: path, Place: "workload." + other.flag, Msg: fmt.Sprintf("%v: --%s says where else it is", err, other.flag)}
		}
	}
	served, err := readServed(arg, workload, topology)
	if err == nil && read.plan != nil && read.plan.Workload.Draft != "" && int(workload.DraftGPU) < len(topology.Devices) {
		served.question.DraftOn = int(workload.DraftGPU)
	}
	return served, err
}

// serve checks a plan or a map for llama.cpp.
func (command *checkCommand) serve(cmd *cobra.Command, arg, path string) error {
	read, err := out.Interruptible(cmd.Context(), 0, path, func() (*mapFile, error) { return readMap(path) })
	if err != nil {
		return err
	}
	if ofRanks(read.plan) {
		return command.ranked(cmd, arg, read)
	}
	if read.plan == nil && command.Given("runtime") && !load.IsGGUF(arg) {
		return out.Usagef("%s is a map: for vLLM and SGLang, devmap check takes a plan, which has the degrees", path)
	}
	served, err := command.planned(arg, path, read)
	if err != nil {
		return err
	}
	topology := served.topology
	question := &served.question
	var answer *serve.Answer
	report := devicemap.CheckServing(served.graph, len(topology.Devices), read.flat, read.faults, func(placed devicemap.Map) ([]devicemap.Prediction, *devicemap.Fault) {
		counts, fault := serve.CountsOf(served.graph, placed, len(topology.Devices))
		if fault != nil {
			return nil, fault
		}
		answer = question.Given(counts, served.workload.InTurn)
		return answer.Predictions(question, topology), nil
	})
	var notes []string
	if answer != nil {
		notes = answer.Notes(question)
	}
	notes = append(notes, command.unlikeNotes(cmd, served.graph, read.plan, report)...)
	of := &judged{graph: served.graph, workload: &served.workload, topology: topology, plan: read.plan}
	if err := command.show(cmd, of, report, notes); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	return faultOf(report)
}
