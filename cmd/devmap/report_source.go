package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// readFrom is the fact of the model's file.
const readFrom = "Read from"

// pageOf is the source of a plan's page without its model. data is its file.
func pageOf(plan *devicemap.Plan, data []byte) *page.Source {
	source := &page.Source{Plan: plan, Missing: "The model was not read, so the moments of the step are not known."}
	source.Sentence, source.Proof = show.Answer(plan)
	source.Limit, source.Overhead = show.Limit(plan), show.Overhead(plan.Workload.Mode)
	facts := [][2]string{
		{"Model", plan.Model.Name},
		{readFrom, plan.Model.Source},
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
