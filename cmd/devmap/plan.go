package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

type planCommand struct {
	*ask.Request
	end time.Time // of the search
}

func newPlan() *cobra.Command {
	command := &planCommand{}
	cmd := &cobra.Command{
		Use:   "plan MODEL --gpus N",
		Short: "Find the balanced placement, with its proof",
		Long: `Find the placement whose largest share of a GPU's budget is smallest, and among
those the most even one; with --objective time the one with the shortest
predicted step that fits; with --objective front all those between the two, as
a table and one JSON document (devmap.front/v1). The plan goes to stdout as
JSON (-o writes a file), a table to stderr. --strategy auto plans the fastest
strategy that fits (devmap estimate shows all). Exit status 3: nothing fits;
what would is printed.

` + ask.Precisions,
		Example: `  devmap plan model.json --gpus 4
  devmap plan ./Qwen2.5-3B --gpus 4 --gpu h200-141gb --mode train --batch 4 -o plan.json`,
		ValidArgsFunction: ask.CompleteModel,
		Args:              out.Exactly(1, "one MODEL, as in: devmap plan MODEL --gpus 4"),
		RunE:              func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	command.Probe = probing(cmd)
	cmd.Flags().Lookup("steps").DefValue = "0" // the pipeline's own, not one run
	return cmd
}

func (command *planCommand) run(cmd *cobra.Command, arg string) error {
	if err := command.Refuse(); err != nil {
		return err
	}
	if err := out.Spare(command.Output, arg, arg, command.TopologyFile()); err != nil {
		return err
	}
	if folder := pipelineFolder(arg); folder != "" {
		return command.pipeline(cmd, arg, folder)
	}
	if err := command.OfModel(arg); err != nil {
		return err
	}
	if read, data := command.posedFile(arg); read != nil {
		return command.solvePosed(cmd, arg, read, data)
	}
	asked, err := command.Problem(arg)
	if err != nil {
		return err
	}
	defer command.begin(cmd)()
	notes := command.DeviceNotes(asked.Topology)
	if asked.Workload.Strategy.Traits().Open {
		half, cancel := context.WithTimeout(cmd.Context(), command.TimeLimit/2)
		row, why, err := command.choose(half, asked)
		cancel()
		if err != nil {
			return err
		}
		asked.Workload, notes = row.Workload, append(notes, why)
	}
	table, err := ask.Costs(asked.Graph, estimate.On(asked.Graph, asked.Workload, asked.Topology))
	if err != nil {
		return err
	}
	notes = append(notes, command.IdleNotes(&table.Workload)...)
	asked.Workload.Runtime, asked.Workload.Schedule = table.Workload.Runtime, table.Workload.Schedule
	problem := planner.Problem{Graph: asked.Graph, Costs: table, Topology: asked.Topology, Pins: asked.Pins, Together: asked.Together, Anywhere: asked.Anywhere, Objective: asked.Objective, Offload: asked.Offload}
	if command.IsFront() {
		return command.front(cmd, problem, asked, notes)
	}
	sol, err := command.solve(cmd.Context(), cmd.ErrOrStderr(), problem, asked)
	if err != nil {
		return err
	}
	return command.show(cmd, problem, asked, sol, notes)
}

// afterwards is what remarks and remedies may take once the limit is reached.
const afterwards = time.Second

// begin starts the clock of --time-limit, which all that is searched runs by:
// the strategy, the map, and what would help.
func (command *planCommand) begin(cmd *cobra.Command) (end func()) {
	command.end = time.Now().Add(command.TimeLimit)
	ctx, cancel := context.WithDeadline(cmd.Context(), command.end.Add(afterwards))
	cmd.SetContext(ctx)
	return cancel
}

// left is the time left to the search for a map.
func (command *planCommand) left() time.Duration {
	return max(time.Until(command.end), time.Nanosecond)
}

func (command *planCommand) solve(ctx context.Context, stderr io.Writer, problem planner.Problem, asked *strategy.Problem) (*planner.Solution, error) {
	s := planner.Settings{TimeLimit: command.left()}
	done := func() {}
	if !command.JSON {
		s.Progress, done = out.Progress(stderr)
	}
	sol, err := planner.Solve(ctx, problem, s)
	done()
	return sol, withHelps(ctx, err, asked)
}

// withHelps adds what would help to an answer that does not fit.
func withHelps(ctx context.Context, err error, asked *strategy.Problem) error {
	var inf *planner.InfeasibleError
	var offload *planner.OffloadError
	if errors.As(err, &inf) || errors.As(err, &offload) && offload.TooLittle {
		return &out.Infeasible{Err: err, Helps: show.Changes(strategy.Smallest(ctx, asked))}
	}
	return err
}

func (command *planCommand) show(cmd *cobra.Command, problem planner.Problem, asked *strategy.Problem, sol *planner.Solution, notes []string) error {
	plan := planOf(problem, sol, notes)
	plan.Warnings = append(plan.Warnings, show.Advice(cmd.Context(), problem, asked, sol)...)
	// The plan first: on a terminal the table then stands last, in sight.
	if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, plan) }); err != nil {
		return err
	}
	printer := show.New(cmd.ErrOrStderr(), problem.Graph, problem.Costs.Workload)
	if !command.JSON {
		printer.Devices(sol.Map, sol.Devices)
		printer.Forms(plan.Stages)
		printer.Certificate(sol, plan.Imbalance)
		printer.Offloaded(sol)
	}
	if command.Explain {
		printer.Explain(cmd.Context(), problem, asked, sol)
	}
	if !command.JSON {
		printer.Warnings(plan.Warnings)
	}
	return nil
}

// planOf is the plan file of a solution.
func planOf(problem planner.Problem, sol *planner.Solution, notes []string) *devicemap.Plan {
	costs := problem.Costs
	if len(sol.Costs.Stages) > 0 { // whose form was chosen
		costs = sol.Costs
	}
	plan := devicemap.NewPlan(problem.Graph, costs, problem.Topology, sol.Map, sol.Devices)
	certificate(plan, sol)
	plan.Shards = estimate.Shards(problem.Graph, &problem.Costs.Workload)
	plan.Warnings = slices.Concat([]string{}, problem.Graph.Warnings, notes, ask.Texts(sol.Warnings))
	return plan
}

// certificate says in a plan what was minimised, what is proved, and what left the
// GPUs.
func certificate(plan *devicemap.Plan, solution *planner.Solution) {
	objective := &plan.Objective
	objective.Name = string(cmp.Or(solution.Objective, planner.Memory))
	objective.Value, objective.LowerBound, objective.Gap = solution.Value, solution.LowerBound, solution.Gap()
	objective.Status, objective.Bound = string(solution.Status), solution.Bound
	if left := solution.Offloaded; left != nil {
		plan.Offload.Bytes, plan.Offload.FromDiskBytes, plan.Offload.LowerBoundBytes = left.Bytes, left.FromDisk, left.LowerBound
	}
}

func allWarnings(graph *modelgraph.Graph, more []costmodel.Message) []string {
	return slices.Concat([]string{}, graph.Warnings, ask.Texts(more))
}
