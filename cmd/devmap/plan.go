package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
)

type planCommand struct {
	*ask.Request
	end time.Time // of the search
}

func newPlan() *cobra.Command {
	c := &planCommand{}
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
		Args:              exactly(1, "one MODEL, as in: devmap plan MODEL --gpus 4"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.Request = ask.New(cmd)
	return cmd
}

func (c *planCommand) run(cmd *cobra.Command, arg string) error {
	if err := c.Refuse(); err != nil {
		return err
	}
	if err := out.Spare(c.Output, arg, arg, c.TopologyFile()); err != nil {
		return err
	}
	if read, data := c.posedFile(arg); read != nil {
		return c.solvePosed(cmd, arg, read, data)
	}
	asked, err := c.Problem(arg)
	if err != nil {
		return err
	}
	defer c.begin(cmd)()
	notes := c.DeviceNotes(asked.Topology)
	if asked.Workload.Strategy.Traits().Open {
		half, cancel := context.WithTimeout(cmd.Context(), c.TimeLimit/2)
		row, why, err := c.choose(half, asked)
		cancel()
		if err != nil {
			return err
		}
		asked.Workload, notes = row.Workload, append(notes, why)
	}
	w := asked.Workload
	w.World, w.Dequantized = ask.World(w.Strategy, asked.Topology), estimate.Dequantizes(asked.Graph, asked.Topology)
	table, err := ask.Costs(asked.Graph, w)
	if err != nil {
		return err
	}
	notes = append(notes, c.IdleNotes(&table.Workload)...)
	asked.Workload.Runtime, asked.Workload.Schedule = table.Workload.Runtime, table.Workload.Schedule
	p := planner.Problem{Graph: asked.Graph, Costs: table, Topology: asked.Topology, Pins: asked.Pins, Together: asked.Together, Anywhere: asked.Anywhere, Objective: asked.Objective, Offload: asked.Offload}
	if c.IsFront() {
		return c.front(cmd, p, asked, notes)
	}
	sol, err := c.solve(cmd.Context(), cmd.ErrOrStderr(), p, asked)
	if err != nil {
		return err
	}
	sol.Warnings = slices.Concat(costmodel.Plain(notes...), sol.Warnings)
	return c.show(cmd, p, asked, sol)
}

// afterwards is what remarks and remedies may take once the limit is reached.
const afterwards = time.Second

// begin starts the clock of --time-limit, which all that is searched runs by:
// the strategy, the map, and what would help.
func (c *planCommand) begin(cmd *cobra.Command) (end func()) {
	c.end = time.Now().Add(c.TimeLimit)
	ctx, cancel := context.WithDeadline(cmd.Context(), c.end.Add(afterwards))
	cmd.SetContext(ctx)
	return cancel
}

// left is the time left to the search for a map.
func (c *planCommand) left() time.Duration { return max(time.Until(c.end), time.Nanosecond) }

func (c *planCommand) solve(ctx context.Context, stderr io.Writer, p planner.Problem, asked *strategy.Problem) (*planner.Solution, error) {
	s := planner.Settings{TimeLimit: c.left()}
	done := func() {}
	if !c.JSON {
		s.Progress, done = out.Progress(stderr)
	}
	sol, err := planner.Solve(ctx, p, s)
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

func (c *planCommand) show(cmd *cobra.Command, p planner.Problem, asked *strategy.Problem, sol *planner.Solution) error {
	plan := planOf(p, sol)
	plan.Warnings = append(plan.Warnings, show.Advice(cmd.Context(), p, asked, sol)...)
	// The plan first: on a terminal the table then stands last, in sight.
	if err := out.Write(cmd, c.Output, func(w io.Writer) error { return devicemap.WriteJSON(w, plan) }); err != nil {
		return err
	}
	t := show.New(cmd.ErrOrStderr(), p.Graph, p.Costs.Workload)
	if !c.JSON {
		t.Devices(sol.Map, sol.Devices)
		t.Certificate(sol)
		t.Offloaded(sol)
	}
	if c.Explain {
		t.Explain(cmd.Context(), p, asked, sol)
	}
	if !c.JSON {
		t.Warnings(plan.Warnings)
	}
	return nil
}

// planOf is the plan file of a solution.
func planOf(p planner.Problem, sol *planner.Solution) *devicemap.Plan {
	plan := devicemap.NewPlan(p.Graph, p.Costs, p.Topology, sol.Map, sol.Devices)
	plan.Objective, plan.Offload = objectiveOf(sol), offloadOf(sol)
	plan.Shards, plan.Warnings = estimate.Shards(p.Graph, &p.Costs.Workload), allWarnings(p.Graph, sol.Warnings)
	return plan
}

func offloadOf(s *planner.Solution) *devicemap.Offload {
	if s.Offloaded == nil {
		return nil
	}
	return &devicemap.Offload{Bytes: s.Offloaded.Bytes, FromDiskBytes: s.Offloaded.FromDisk, LowerBoundBytes: s.Offloaded.LowerBound}
}

func allWarnings(g *modelgraph.Graph, more []costmodel.Message) []string {
	return slices.Concat([]string{}, g.Warnings, ask.Texts(more))
}
