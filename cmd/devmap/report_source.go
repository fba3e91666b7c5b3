package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// pageOf is the source of a plan's page without its model. data is its file. model is where the model is
// now; empty: where it was planned from.
func pageOf(plan *devicemap.Plan, data []byte, model string) *page.Source {
	source := &page.Source{Missing: "The model was not read, so the moments of the step are not known."}
	answerWith(source, plan)
	source.Overhead = show.Overhead(plan.Workload.Mode)
	facts := [][2]string{
		{"Model", plan.Model.Name},
		{"Read from", cmp.Or(model, plan.Model.Source)},
		{"Model's digest", plan.Model.Digest},
		{"Plan's digest", fmt.Sprintf("sha256:%x", sha256.Sum256(data))},
		{"Transformers", plan.Model.Transformers},
		{"devmap", version()},
	}
	for _, fact := range facts {
		if fact[1] != "" {
			source.Facts = append(source.Facts, fact)
		}
	}
	return source
}

// writtenPage is [pageOf] of a plan as devmap writes it.
func writtenPage(plan *devicemap.Plan, model string) (*page.Source, error) {
	var data bytes.Buffer
	if err := devicemap.WriteJSON(&data, plan); err != nil {
		return nil, err
	}
	return pageOf(plan, data.Bytes(), model), nil
}

// answerWith makes a plan the one that a page answers with.
func answerWith(source *page.Source, plan *devicemap.Plan) {
	source.Plan = plan
	source.Sentence, source.Proof = show.Answer(plan)
	source.Limit = show.Limit(plan)
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
		answerWith(source, estimatedAgain(source.Plan, made))
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
			Text: show.Change(&changes[i]), Command: asked.Line(model, &changes[i]), Effect: show.Effect(solution),
			Fits: solution.LargestShare <= 1, Verdict: solution.Verdict, Seconds: changes[i].Row.StepSeconds,
			PeakBytes: solution.Devices[solution.Bottleneck].Predicted.PeakAllocatedBytes,
		}
		if one.Fits || plan.Verdict == "no" {
			source.Changes = append(source.Changes, one)
		}
	}
	switch interrupted := ctx.Err() != nil; {
	case interrupted && len(source.Changes) == 0:
		source.NoChanges = "No change was tried: the search was interrupted, or its time was over."
	case interrupted:
		source.NoChanges = "Not all changes were tried: the search was interrupted, or its time was over."
	case len(source.Changes) == 0:
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

// pageSource is the source of the page of a plan that was just made, with its command and more facts.
func pageSource(cmd *cobra.Command, request *ask.Request, plan *devicemap.Plan, facts ...[2]string) (*page.Source, error) {
	source, err := writtenPage(plan, "")
	if err != nil {
		return nil, err
	}
	facts = slices.Insert(facts, 0, [2]string{"Command", ask.Line(request, cmd.Flags().Arg(0), nil)})
	source.Facts = slices.Concat(facts, source.Facts)
	return source, nil
}

// reportServed writes the page of a plan for an engine that serves. said are sentences on its answer.
func (command *planCommand) reportServed(cmd *cobra.Command, plan *devicemap.Plan, graph *modelgraph.Graph, said []string) error {
	if command.Report == "" {
		return nil
	}
	source, err := pageSource(cmd, command.Request, plan, show.Facts(plan, graph)...)
	if err != nil {
		return err
	}
	source.Bound = said
	return out.Write(cmd, command.Report, page.Of(source).Write)
}

// report writes the page of a plan that was just made to the file of --report.
func (command *planCommand) report(cmd *cobra.Command, plan *devicemap.Plan, asked *ask.Question, solution *planner.Solution, front []page.Point) error {
	if command.Report == "" {
		return nil
	}
	source, err := solvedSource(command, cmd, plan, asked, solution)
	if err != nil {
		return err
	}
	source.Front = front
	return out.Write(cmd, command.Report, page.Of(source).Write)
}

// solvedSource is the source of the page of a solution.
func solvedSource(command *planCommand, cmd *cobra.Command, plan *devicemap.Plan, asked *ask.Question, solution *planner.Solution) (*page.Source, error) {
	var facts [][2]string
	if asked.Diffusion != nil {
		facts = show.PipelineFacts(solution, plan.Workload.Runtime)
	} else {
		facts = show.Facts(plan, asked.Graph)
		if defaults := ask.Defaults(command.Request, asked.Graph, &asked.Costs.Workload); len(defaults) > 0 {
			facts = append(facts, [2]string{"Defaults", strings.Join(defaults, ", ")})
		}
	}
	source, err := pageSource(cmd, command.Request, plan, facts...)
	if err != nil {
		return nil, err
	}
	if asked.Diffusion == nil {
		source.Graph, source.Costs, source.Placed = asked.Graph, solution.Costs, solution.Map
		switch {
		case plan.Workload.Runtime != costmodel.Devmap:
		case plan.Verdict == "no":
			source.Costs, source.Missing = nil, "A plan that does not fit has no program, so the moments of its step are not known."
		default:
			if err := compiledInto(cmd, source, cmp.Or(command.Output, "the plan"), ""); err != nil {
				return nil, err
			}
		}
	}
	source.Bound = show.Bounds(asked, solution)
	helped(cmd.Context(), source, asked, cmd.Flags().Arg(0))
	return source, nil
}

// reportUnfit writes the page of the map that is closest to fitting, to the file of --report.
func (command *planCommand) reportUnfit(cmd *cobra.Command, asked *ask.Question, err error, notes []string) error {
	var none *planner.InfeasibleError
	if command.Report == "" || !errors.As(err, &none) || none.Best == nil {
		return nil
	}
	asked = chosen(asked, none.Best)
	source, err := solvedSource(command, cmd, planOf(asked, none.Best, notes), asked, none.Best)
	if err != nil {
		return err
	}
	source.Proof = show.Sentence(ask.ErrorText(none))
	return out.Write(cmd, command.Report, page.Of(source).Write)
}
