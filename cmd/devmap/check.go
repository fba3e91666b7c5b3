package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/hook"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

type checkCommand struct{ *ask.Request }

func newCheck() *cobra.Command {
	command := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check MODEL MAP",
		Short: "Validate a device map and show each GPU's peak",
		Long: `Validate a device map and show each GPU's peak memory.

MAP is a plan or a device map (module path to device). devmap lists every fault
and exits with status 4 if there is one. A plan brings its workload and GPUs;
flags override them. A plan for ddp, zero, fsdp or hsdp has no map: devmap
checks the peak of each GPU.

--run also runs a forward and a backward under the map, on tensors without data
and without a GPU. It starts Python: python3 of PATH, or that of DEVMAP_PYTHON,
which has torch and Transformers or diffusers.`,
		Example: `  devmap check ./Qwen2.5-3B device_map.json --gpus 4 --mode train --batch 4
  devmap check model.json plan.json
  devmap check ./Qwen2.5-3B plan.json --run`,
		ValidArgsFunction: ask.CompleteModel,
		Args:              out.Exactly(2, "MODEL and MAP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ask.Serves(command.Request, load.IsGGUF(args[0])) {
				return command.serve(cmd, args[0], args[1])
			}
			return command.run(cmd, args[0], args[1])
		},
	}
	command.Request = ask.New(cmd)
	command.Probe = probing(cmd)
	return cmd
}

// check accepts the flags of the search, hidden, so that one set serves plan and check. It
// evaluates the map as it is.

// checkOutput is the output of check --json.
type checkOutput struct {
	FormatVersion string `json:"format_version"`

	Devices   []devicemap.Prediction `json:"devices"`
	Verdict   devicemap.Verdict      `json:"verdict"`
	Imbalance float64                `json:"imbalance"`
	Faults    []fault                `json:"faults"`
	Warnings  []string               `json:"warnings"`
	Run       *hook.Ran              `json:"run,omitempty"`
}

// fault is a [devicemap.Fault] with all its fields, including empty ones.
type fault struct {
	Kind    string `json:"kind"`
	Module  string `json:"module"`
	Message string `json:"message"`
	Nearest string `json:"nearest"`
}

// judged is the subject of a check; plan is nil if MAP is only a map.
type judged struct {
	graph    *modelgraph.Graph
	workload *costmodel.Workload
	topology *costmodel.Topology
	plan     *devicemap.Plan
	ran      *hook.Ran // nil: no step ran; unrun says why if one was requested
	unrun    string
}

func (command *checkCommand) run(cmd *cobra.Command, model, path string) error {
	if err := cmp.Or(ask.IdleServing(command.Request), command.Refuse(), ask.RefuseGGUF(command.Request, model)); err != nil {
		return err
	}
	model, adapted, err := ask.Base(command.Request, model)
	if err != nil {
		return err
	}
	graph, err := ask.ReadModel(model, ask.ReadingOf(command.Request))
	if err != nil {
		return err
	}
	graph.Warnings = append(graph.Warnings, adapted...)
	read, err := out.Interruptible(cmd.Context(), 0, path, func() (*mapFile, error) { return readMap(path) })
	if err != nil {
		return err
	}
	flat, plan, faults := read.flat, read.plan, read.faults
	if ofRanks(plan) {
		return command.ranked(cmd, model, read)
	}
	if plan != nil {
		ask.DropDefaults(cmd) // the plan has its own settings
	}
	workload, topo, err := command.Setting(plan, flat)
	if err != nil {
		return err
	}
	fewer, err := fewerNotes(path, plan, flat, topo)
	if err := cmp.Or(err, command.suits(path, workload.Strategy, plan)); err != nil {
		return err
	}
	if err := command.chosen(plan, &workload); err != nil {
		return err
	}
	if err := command.Lengths(graph); err != nil {
		return err
	}
	table, err := ask.Costs(graph, estimate.On(graph, workload, topo))
	if err != nil {
		return command.blame(path, plan, err)
	}
	if err := formsOf(graph, table, plan, path); err != nil {
		return err
	}
	report := devicemap.Check(graph, table, topo, flat, faults)
	of := &judged{graph: graph, workload: &table.Workload, topology: topo, plan: plan}
	if err := command.try(cmd.Context(), model, of, flat, report); err != nil {
		return err
	}
	notes := slices.Concat(fewer, allWarnings(graph, table.Warnings), report.Warnings, command.DeviceNotes(topo), ask.HardwareNotes(topo, &table.Workload), command.IdleNotes(&table.Workload), command.unlikeNotes(cmd, graph, plan, report), of.tried())
	if err := command.show(cmd, of, report, notes); err != nil {
		return err
	}
	show.Warnings(cmd.ErrOrStderr(), notes)
	return faultOf(report)
}

// fewerNotes names the GPUs that a plan has and the command's flags do not. Without a map, whose
// devices are judged one by one, that is an error.
func fewerNotes(path string, plan *devicemap.Plan, flat devicemap.Flat, topo *costmodel.Topology) ([]string, error) {
	if plan == nil || len(topo.Devices) >= len(plan.Topology.Devices) {
		return nil, nil
	}
	count, here := len(plan.Topology.Devices), len(topo.Devices)
	text := fmt.Sprintf("%s is for %s, and %s: plan again with --gpus %d", out.OneLine(path), show.Plural(count, "GPU"), show.Missing(count, here), here)
	if len(flat) == 0 {
		return nil, out.Usagef("%s", text)
	}
	return []string{text}, nil
}

// try runs a step with the map, if --run is given. A failed step is a fault. A map with another
// fault than memory is not run, as no engine accepts it.
func (command *checkCommand) try(ctx context.Context, model string, of *judged, flat devicemap.Flat, report *devicemap.Report) error {
	if !command.Try {
		return nil
	}
	engine := of.workload.Runtime
	if traits := of.workload.Strategy.Traits(); traits.Replicated || engine != "accelerate" && (engine != "torch" || !traits.Staged) {
		return out.Usagef("--run: it runs maps for accelerate and stages for torch, and this is %s under %s", of.workload.Strategy, engine)
	}
	for i := range report.Faults {
		if report.Faults[i].Kind != "does-not-fit" {
			of.unrun = "the map was not run: mend its faults first"
			return nil
		}
	}
	config, err := ask.ReadConfig(model)
	if err != nil {
		return fmt.Errorf("--run builds the model from its config: %w; in Python, devmap.verify(module, map) runs any module", err)
	}
	step := hook.Step{Config: string(config), Class: of.graph.Class, Map: map[string]any{}, Engine: engine}
	for _, entry := range flat {
		step.Map[entry.Key] = entry.Device
	}
	if of.plan != nil && engine == "torch" {
		step.Stages = of.plan.Stages
	}
	if of.ran, err = hook.Run(ctx, &step); err != nil || of.ran.OK {
		return err
	}
	report.Faults = append(report.Faults, devicemap.Fault{Kind: "does-not-run", Module: of.ran.Module, Message: costmodel.Messagef("%s", of.ran.Message)})
	return nil
}

// tried returns notes on the step.
func (of *judged) tried() []string {
	switch {
	case of.unrun != "":
		return []string{of.unrun}
	case of.ran == nil:
		return nil
	}
	var notes []string
	if len(of.ran.Assumed) > 0 {
		notes = append(notes, "the step asks for data that it does not have: "+strings.Join(of.ran.Assumed, "; "))
	}
	return append(notes, "the step ran in "+of.ran.Versions)
}

// unlikeNotes says where the map or the flags differ from the subject of the check.
func (command *checkCommand) unlikeNotes(cmd *cobra.Command, graph *modelgraph.Graph, plan *devicemap.Plan, report *devicemap.Report) []string {
	var notes []string
	if plan != nil && plan.Model.Digest != "" && plan.Model.Digest != graph.Digest() {
		notes = append(notes, fmt.Sprintf("the plan was made for another model (%q, digest %s)", plan.Model.Name, plan.Model.Digest))
	}
	if note := stale(plan, report.Devices); note != "" && !workloadGiven(cmd) {
		notes = append(notes, note)
	}
	if command.Given("pin", "together") {
		notes = append(notes, "--pin and --together are for plan: check judges the map as it is")
	}
	return notes
}

// suits refuses a strategy that does not match MAP.
func (command *checkCommand) suits(path string, strategy costmodel.Strategy, plan *devicemap.Plan) error {
	switch {
	case strategy.Traits().Open:
		return out.Usagef("--strategy auto is for devmap plan: check judges a map under one strategy")
	case strategy.Traits().Replicated && (plan == nil || !plan.Workload.Strategy.Traits().Replicated):
		return out.Usagef("--strategy %s has no device map to check: under it every GPU runs the whole model (devmap plan predicts it)", strategy)
	case !strategy.Traits().Replicated && plan != nil && plan.Workload.Strategy.Traits().Replicated:
		return out.Usagef("--strategy %s: %q is a plan for %s and has no device map", strategy, path, plan.Workload.Strategy)
	}
	return nil
}

// chosen refuses degrees that the stages of a plan do not have, if the planner chose each stage's:
// the map determines the GPUs of a stage.
func (command *checkCommand) chosen(plan *devicemap.Plan, asked *costmodel.Workload) error {
	if plan == nil || plan.Workload.DP != costmodel.AutoDegree && plan.Workload.TP != costmodel.AutoDegree {
		return nil
	}
	for i := range plan.Stages {
		stage := &plan.Stages[i]
		for _, degree := range []struct {
			name      string
			asked, is int64
			open      bool
		}{{"dp", asked.DP.Count(), max(1, stage.DP), asked.DP == costmodel.AutoDegree}, {"tp", asked.TP.Count(), max(1, stage.TP), asked.TP == costmodel.AutoDegree}} {
			if command.Given(degree.name) && !degree.open && degree.asked != degree.is {
				return out.Usagef("--%s %d contradicts the plan: its stage %d, from GPU %d on, has --%s %d; leave it out, or plan again",
					degree.name, degree.asked, i, stage.Device, degree.name, degree.is)
			}
		}
	}
	return nil
}

// blame attributes a workload that no engine runs: to a given flag, otherwise to the plan.
func (command *checkCommand) blame(path string, plan *devicemap.Plan, err error) error {
	var w *costmodel.FieldError
	if plan == nil || !errors.As(err, &w) || command.Given(strings.ReplaceAll(w.Field, "_", "-")) {
		return err
	}
	return &modelgraph.SyntaxError{File: path, Place: "workload." + w.Field, Msg: w.Msg.Words(ask.Say)}
}

// mapFile is the content of a MAP argument; plan is nil if it is only a map.
type mapFile struct {
	flat   devicemap.Flat
	plan   *devicemap.Plan
	faults []devicemap.Fault
}

func readMap(path string) (*mapFile, error) {
	flat, plan, faults, err := devicemap.ReadMap(path)
	return &mapFile{flat, plan, faults}, err
}

// workloadGiven reports flags that change the workload or devices of a check.
func workloadGiven(cmd *cobra.Command) bool {
	given := false
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { given = given || flag.Changed && flag.Name != "json" && flag.Name != "run" })
	return given
}

// stale says that a plan's own figures differ from today's.
func stale(plan *devicemap.Plan, now []devicemap.Prediction) string {
	if plan == nil || len(plan.Devices) != len(now) {
		return ""
	}
	for device := range now {
		then, now := plan.Devices[device].Predicted.PeakAllocatedBytes, now[device].Predicted.PeakAllocatedBytes
		if then != now {
			return fmt.Sprintf("the plan says that GPU %d peaks at %v, and it is %v: the model, the map or devmap changed since", device, costmodel.Bytes(then), costmodel.Bytes(now))
		}
	}
	for device := range now {
		then, now := plan.Devices[device].Predicted.HostBytes, now[device].Predicted.HostBytes
		if then != now {
			return fmt.Sprintf("the plan says that activations of GPU %d take %d bytes of host memory, and they take %d: the model, the map or devmap changed since", device, then, now)
		}
	}
	return ""
}

// show prints the report, for people or for programs.
func (command *checkCommand) show(cmd *cobra.Command, of *judged, report *devicemap.Report, notes []string) error {
	if !command.JSON {
		_, err := io.WriteString(cmd.OutOrStdout(), verdict(out.Cell(of.graph.Name), of.workload.Strategy.Traits().Replicated, report)+of.words())
		printer := show.New(cmd.ErrOrStderr(), of.graph, *of.workload)
		var defaults []string
		if of.plan == nil && of.workload.Mode != costmodel.Serve { // otherwise the plan sets them
			printer.Implied = command.Implied
			defaults = ask.Defaults(command.Request, of.graph, of.workload)
		}
		printer.Header(of.topology, defaults)
		if len(report.Devices) > 0 {
			printer.Devices(report.Map, report.Devices)
		}
		printer.Judged(report.Verdict, report.Devices, report.Imbalance, len(report.Faults))
		return err
	}
	out := checkOutput{FormatVersion: "devmap.check/v1", Devices: report.Devices, Verdict: report.Verdict, Imbalance: report.Imbalance, Warnings: notes, Run: of.ran}
	for _, f := range report.Faults {
		if f.Kind != "does-not-fit" && out.Verdict != "no" { // a map that nothing runs has no memory verdict
			out.Verdict = "invalid"
		}
		out.Faults = append(out.Faults, fault{f.Kind, f.Module, f.Message.Words(ask.Say), f.Nearest})
	}
	return devicemap.WriteJSON(cmd.OutOrStdout(), out)
}

// words says that the step runs. A failed step is a fault instead.
func (of *judged) words() string {
	if of.ran == nil || !of.ran.OK {
		return ""
	}
	return out.Cell(of.graph.Name) + ": runs: " + out.OneLine(of.ran.Message) + "\n"
}

// faultOf is an error if the map has a fault.
func faultOf(report *devicemap.Report) error {
	if len(report.Faults) > 0 {
		return out.ErrCheck
	}
	return nil
}

// ranked checks a plan of an engine with ranks: its stages, and what each GPU holds.
func (command *checkCommand) ranked(cmd *cobra.Command, arg string, read *mapFile) error {
	plan := read.plan
	settings := []string{"gpus", "gpu", "topology", "reserve", "mem-fraction", "runtime", "mode", "context", "sequences", "kv-type", "tp", "pp", "dp", "ep", "max-num-batched-tokens", "enforce-eager", "engine-version"}
	if given := slices.IndexFunc(settings, func(name string) bool { return command.Given(name) }); given >= 0 {
		return out.Usagef("--%s: a plan for %s is checked with its own settings: leave it out, or plan again", settings[given], plan.Workload.Runtime)
	}
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
	return faultOf(report)
}
