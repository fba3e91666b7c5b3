package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

type reportCommand struct{ *ask.Request }

func newReport() *cobra.Command {
	command := &reportCommand{}
	cmd := &cobra.Command{
		Use:   "report PLAN…",
		Short: "Write a page with pictures of a plan and a run",
		Long: `Write one HTML page of a plan: whether it fits and what is proved, the memory of
each GPU and what holds it, memory and time over the step, and changes that
would help. --run adds what devmap run or devmap watch measured.

The page needs no network and no other file. A browser opens it from disk.

devmap reads the model again, for the memory over the step. If the model is not
there, the page has the plan's own figures.`,
		Example: `  devmap report plan.json -o report.html
  devmap report plan.json --run measured.json -o report.html
  devmap plan llama-3.1-8b --gpus 4 -o plan.json --report report.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return out.Usagef("%s takes one PLAN or more; none given (devmap help %s)", cmd.CommandPath(), cmd.Name())
		},
		RunE: command.run,
	}
	command.Request = ask.New(cmd)
	return cmd
}

func (command *reportCommand) run(cmd *cobra.Command, files []string) error {
	if command.Ran != "" && len(files) > 1 {
		return out.Usagef("--run %s is of one plan, and there are %d: give one PLAN", command.Ran, len(files))
	}
	if command.Output == "" && out.Terminal(cmd.OutOrStdout()) && !command.JSON {
		return out.Usagef("a page is HTML for a browser: -o report.html writes it to a file")
	}
	var all *page.Page
	for _, file := range files {
		one, err := command.page(cmd, file)
		if err != nil {
			return err
		}
		all = all.With(one)
	}
	return out.Write(cmd, command.Output, func(to io.Writer) error {
		if command.JSON {
			return all.WriteJSON(to)
		}
		return all.Write(to)
	})
}

// page is the page of a plan.
func (command *reportCommand) page(cmd *cobra.Command, file string) (*page.Page, error) {
	data, err := out.Interruptible(cmd.Context(), 0, file, func() ([]byte, error) {
		return modelgraph.ReadSmall(file, "a plan", program.MaxBytes)
	})
	if err != nil {
		return nil, err
	}
	plan, err := devicemap.ReadPlan(file, data)
	if err != nil {
		return nil, err
	}
	if err := out.Spare(cmd, command.written(), plan.Model.Source); err != nil {
		return nil, err
	}
	source := pageOf(plan, data)
	if command.Ran != "" {
		if err := runOf(cmd, command.Ran, source, file); err != nil {
			return nil, err
		}
	}
	return command.made(cmd, source, file)
}

// made completes a plan's page with its model, its command and changes of it.
func (command *reportCommand) made(cmd *cobra.Command, source *page.Source, file string) (*page.Page, error) {
	plan := source.Plan
	if err := modelled(cmd, source, file, command.Model); err != nil {
		return nil, err
	}
	if err := sameRun(source, file, command.Ran); err != nil {
		return nil, err
	}
	var asked *ask.Question
	if source.Graph != nil {
		asked = ask.OfPlan(cmd.Context(), plan, source.Graph)
	}
	if asked == nil {
		source.NoChanges = "Which changes would help is not known: flags alone do not make this plan again."
		return page.Of(source), nil
	}
	source.Facts = slices.Insert(source.Facts, 0, [2]string{"Command", asked.Line(plan.Model.Source, nil)})
	helped(cmd.Context(), source, asked, plan.Model.Source)
	return page.Of(source), nil
}

func (command *reportCommand) written() out.Written {
	return out.Written{Flag: "output", Path: command.Output, Kinds: []string{"page"}}
}

// pageOf is the source of a plan's page without its model. data is its file.
func pageOf(plan *devicemap.Plan, data []byte) *page.Source {
	source := &page.Source{Plan: plan, Missing: "The model was not read, so the moments of the step are not known."}
	source.Sentence, source.Proof = show.Answer(plan)
	source.Limit = show.Limit(plan)
	facts := [][2]string{
		{"Model", plan.Model.Name}, {"Read from", plan.Model.Source}, {"Model's digest", plan.Model.Digest}, {"Plan's digest", fmt.Sprintf("sha256:%x", sha256.Sum256(data))},
		{"Strategy", show.Described(&plan.Workload)}, {"Runtime", plan.Workload.Runtime}, {"Transformers", plan.Model.Transformers}, {"devmap", version()},
	}
	for _, fact := range facts {
		if fact[1] != "" {
			source.Facts = append(source.Facts, fact)
		}
	}
	return source
}

// modelled adds the model of a plan, its costs and its program. A model that is not there is said on
// the page; one that the plan is not for is an error.
func modelled(cmd *cobra.Command, source *page.Source, file, model string) error {
	plan := source.Plan
	if len(plan.Pipeline) > 0 || plan.Workload.Mode == costmodel.Serve {
		return nil
	}
	graph, err := plannedModel(plan, file, model)
	if fault := (*modelgraph.SyntaxError)(nil); err != nil && (model != "" || errors.As(err, &fault)) {
		return err
	}
	if err != nil {
		source.Missing = "The model is not at its place, so the moments of the step are not known: --model says where it is."
		show.Warnings(cmd.ErrOrStderr(), []string{ask.ErrorText(err)})
		return nil
	}
	if plan.Workload.Runtime == costmodel.Devmap || source.Run != nil {
		return compiledInto(cmd, source, file, model)
	}
	table, err := ask.Costs(graph, estimate.On(graph, plan.Workload, &plan.Topology))
	if err == nil {
		err = formsOf(graph, table, plan, file)
	}
	if err != nil {
		source.Missing = "The moments of the step are not known: " + ask.ErrorText(err) + "."
		return nil
	}
	source.Graph, source.Costs = graph, table
	if len(plan.DeviceMap) > 0 {
		source.Placed = devicemap.Check(graph, table, &plan.Topology, plan.DeviceMap, nil).Map
	}
	return nil
}

// compiledInto adds the program of a plan for devmap's own engine.
func compiledInto(cmd *cobra.Command, source *page.Source, file, model string) error {
	made, err := programOf(cmd, source.Plan, file, model, "")
	if err != nil {
		return err
	}
	if faults := made.Program.Check().Err(); faults != nil {
		return fmt.Errorf("the program of %q: %w", file, faults)
	}
	source.Graph, source.Placed, source.Program = made.Graph, made.placed, made.Program
	if was := source.Plan.Workload.Runtime; was != costmodel.Devmap {
		source.Plan = estimatedAgain(source.Plan, made)
		source.Sentence, source.Proof = show.Answer(source.Plan)
		source.Limit = show.Limit(source.Plan)
	}
	if on := made.together(made.Program); on != nil {
		source.Result, err = simulate.Shared(made.Program, on)
	} else {
		source.Result, err = simulate.Run(made.Program)
	}
	return err
}

// helped adds the changes of a problem that were tried, and Accelerate's own map.
func helped(ctx context.Context, source *page.Source, asked *ask.Question, model string) {
	plan := source.Plan
	var changes []strategy.Change
	if plan.Verdict == "no" {
		changes = asked.Smallest(ctx)
	} else {
		changes = asked.Next(ctx, plan.Objective.Value)
	}
	for i := range changes {
		solution := changes[i].Row.Solution
		one := page.Change{
			Text: ask.ChangeText(&changes[i]), Command: asked.Line(model, &changes[i]), Effect: show.Effect(solution),
			Fits: solution.LargestShare <= 1, Seconds: changes[i].Row.StepSeconds,
		}
		for _, device := range solution.Devices {
			one.PeakBytes = max(one.PeakBytes, device.Predicted.PeakAllocatedBytes)
		}
		source.Changes = append(source.Changes, one)
	}
	if len(changes) == 0 {
		source.NoChanges = "No change was found that lowers the largest share."
	}
	if row := strategy.Automatic(asked.Problem); row != nil {
		source.Now = nowOf(row)
	}
}

// nowOf is the map of a row of Accelerate's own.
func nowOf(row *strategy.Row) *page.Now {
	now := &page.Now{Title: `Accelerate's own map (device_map="auto")`, Note: "It fills GPUs by the size of the weights, without a plan.", Seconds: row.StepSeconds}
	for i := range row.Solution.Devices {
		device := &row.Solution.Devices[i]
		now.GPUs = append(now.GPUs, page.NowGPU{Device: device.Device, PeakBytes: device.Predicted.PeakAllocatedBytes, BudgetBytes: device.Budget, Verdict: device.Verdict})
	}
	return now
}

// maxReportBytes limits a report of a run.
const maxReportBytes = 256 << 20

// runOf reads the report of devmap run or watch for a plan into its source. A report of another plan is an
// error.
func runOf(cmd *cobra.Command, name string, source *page.Source, file string) error {
	data, err := out.Interruptible(cmd.Context(), 0, name, func() ([]byte, error) {
		return modelgraph.ReadSmall(name, "a report", maxReportBytes)
	})
	if err != nil {
		return err
	}
	var other string // what a report is of instead
	for documents := jsontext.NewDecoder(bytes.NewReader(data)); ; {
		text, err := documents.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		var head struct {
			FormatVersion string `json:"format_version"`
			Backend       string `json:"backend"`
			Model         struct {
				Name   string `json:"name"`
				Digest string `json:"digest"`
			} `json:"model"`
		}
		if err != nil || json.Unmarshal(text, &head) != nil || head.FormatVersion != "devmap.report/v1" {
			return out.Usagef("--run %s is no report of devmap run or watch: their -o FILE writes one", name)
		}
		if head.Model.Digest != source.Plan.Model.Digest { // of several plans
			other = fmt.Sprintf("model %q (%s)", head.Model.Name, head.Model.Digest)
			continue
		}
		var into any = &source.Run
		if head.Backend == "watch" {
			into = &source.Watched
		}
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("--run %s: %w", name, err)
		}
	}
	switch plan := source.Plan; {
	case source.Run == nil && source.Watched == nil && other != "":
		return out.Usagef("--run %s is of %s, and %s is a plan for %q (%s): give the report of this plan", name, other, file, plan.Model.Name, plan.Model.Digest)
	case source.Run == nil && source.Watched == nil:
		return out.Usagef("--run %s is empty: it is no report of devmap run or watch", name)
	case source.Run != nil && len(source.Run.Devices) != len(plan.Devices) || source.Watched != nil && len(source.Watched.Devices) != len(plan.Devices):
		return out.Usagef("--run %s has another number of devices than %s, which plans %d: give the report of this plan", name, file, len(plan.Devices))
	}
	return nil
}

// sameRun refuses a report that predicts other peaks than the plan.
func sameRun(source *page.Source, file, name string) error {
	var peaks []int64
	if source.Run != nil {
		for i := range source.Run.Devices {
			peaks = append(peaks, source.Run.Devices[i].Predicted.PeakAllocatedBytes)
		}
	}
	if source.Watched != nil {
		for i := range source.Watched.Devices {
			peaks = append(peaks, source.Watched.Devices[i].Predicted.PeakAllocatedBytes)
		}
	}
	for i, was := range peaks {
		if is := source.Plan.Devices[i].Predicted.PeakAllocatedBytes; was != is {
			return out.Usagef("--run %s predicts %v for device %d, and %s predicts %v: give the report of this plan", name, costmodel.Bytes(was), i, file, costmodel.Bytes(is))
		}
	}
	return nil
}

// estimatedAgain is a plan of another engine as devmap's engine runs it.
func estimatedAgain(plan *devicemap.Plan, made *compiled) *devicemap.Plan {
	again := *plan
	again.Devices, again.StepSeconds, again.Imbalance, again.Verdict = made.devices, made.seconds, made.imbalance, ""
	again.Workload.Runtime = costmodel.Devmap
	again.Objective.Status = "" // what is proved is of the other engine
	for _, verdict := range []devicemap.Verdict{"fits", "tight", "no"} {
		if slices.ContainsFunc(made.devices, func(device devicemap.Prediction) bool { return device.Verdict == verdict }) {
			again.Verdict = verdict
		}
	}
	note := fmt.Sprintf("the plan targets %s; its map is re-estimated for devmap's engine, which ran it", plan.Workload.Runtime)
	again.Warnings = append(slices.Clone(plan.Warnings), note)
	return &again
}

// report writes the page of --report: of each plan with what its last turn measured.
func (command *runCommand) report(cmd *cobra.Command) error {
	if command.Report == "" {
		return nil
	}
	of := &reportCommand{command.Request}
	var all *page.Page
	for _, file := range cmd.Flags().Args() {
		plan, err := devicemap.ReadPlan(file)
		if err != nil {
			return err
		}
		var data bytes.Buffer
		if err := devicemap.WriteJSON(&data, plan); err != nil {
			return err
		}
		source := pageOf(plan, data.Bytes())
		source.Run = command.measured[file]
		one, err := of.made(cmd, source, file)
		if err != nil {
			return err
		}
		all = all.With(one)
	}
	return out.Write(cmd, command.Report, all.Write)
}

// report writes the page of a plan that was just made to the file of --report. The question and its
// solution are nil for an engine that serves.
func (command *planCommand) report(cmd *cobra.Command, plan *devicemap.Plan, asked *ask.Question, solution *planner.Solution, front []page.Point) error {
	if command.Report == "" {
		return nil
	}
	var data bytes.Buffer
	if err := devicemap.WriteJSON(&data, plan); err != nil {
		return err
	}
	source, model := pageOf(plan, data.Bytes()), cmd.Flags().Arg(0)
	line := command.Line(model, nil)
	source.Facts = slices.Insert(source.Facts, 0, [2]string{"Command", line})
	if solution != nil && asked.Diffusion == nil {
		source.Graph, source.Costs, source.Placed = asked.Graph, solution.Costs, solution.Map
		switch {
		case plan.Workload.Runtime != costmodel.Devmap:
		case plan.Verdict == "no":
			source.Costs, source.Missing = nil, "A plan that does not fit has no program, so the moments of its step are not known."
		default:
			if err := compiledInto(cmd, source, cmp.Or(command.Output, "the plan"), ""); err != nil {
				return err
			}
		}
	}
	if solution != nil {
		source.Bound = show.Bounds(asked, solution)
		helped(cmd.Context(), source, asked, model)
	}
	source.Front = front
	return out.Write(cmd, command.Report, page.Of(source).Write)
}

// reportUnfit writes the page of the map that is closest to fitting, to the file of --report.
func (command *planCommand) reportUnfit(cmd *cobra.Command, asked *ask.Question, err error, notes []string) error {
	var none *planner.InfeasibleError
	if command.Report == "" || !errors.As(err, &none) || none.Best == nil {
		return nil
	}
	asked = chosen(asked, none.Best)
	return command.report(cmd, planOf(asked, none.Best, notes), asked, none.Best, nil)
}

// spareReport refuses a file of --report that is read, or that another output is.
func spareReport(cmd *cobra.Command, path, model string, others ...string) error {
	if path != "" && slices.Contains(others, path) {
		return out.Usagef("--report %q: another output has that name: name another file", path)
	}
	return out.Spare(cmd, out.Written{Flag: "report", Path: path, Kinds: []string{"page"}}, model)
}

// report writes the page of --report: of the plan, if there is one, with the memory of the command.
func (command *watchCommand) report(cmd *cobra.Command, plan *devicemap.Plan, file string, ran *watched) error {
	if command.Report == "" || ran.report == nil {
		return nil
	}
	made := page.OfWatch(ran.report, ran.readings)
	if plan != nil {
		var data bytes.Buffer
		if err := devicemap.WriteJSON(&data, plan); err != nil {
			return err
		}
		source := pageOf(plan, data.Bytes())
		source.Watched, source.Readings = ran.report, ran.readings
		var err error
		if made, err = (&reportCommand{command.Request}).made(cmd, source, file); err != nil {
			return err
		}
	}
	return out.Write(cmd, command.Report, made.Write)
}
