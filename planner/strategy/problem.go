package strategy

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// comparison is a problem whose strategies are compared. A strategy, runtime or schedule of its
// workload restricts the rows; [costmodel.Auto] and none do not. 0 micro-batches are as many as
// fill a pipeline. Its Costs are of one strategy, and not read.
type comparison struct {
	planner.Problem
	Options
	fitsOnly bool // a row that does not fit needs no answer
}

func (of *comparison) gpus() int64 { return int64(len(of.Topology.Devices)) }

func (of *comparison) open() bool { return of.Workload.Strategy.Traits().Open }

func (of *comparison) row(ctx context.Context, workload costmodel.Workload) Row {
	row := Row{Workload: workload}
	problem := of.Problem
	problem.Workload, problem.Costs = workload, nil
	problem.Unconstrained = problem.Unconstrained && workload.Strategy.Traits().Sequential
	problem.Offload = of.tier(&workload)
	problem, err := problem.Resolved()
	if err != nil {
		row.Refused = err
		if fault := (*costmodel.FieldError)(nil); errors.As(err, &fault) { // a row does not have to name the model
			row.Refused = fault
		}
		return row
	}
	problem.Costs.Marks = nil // rows are of peaks; a pool takes longer to follow than all else of a row
	return of.solved(ctx, row, problem)
}

// solved answers a row: the best placement, whether it fits or not.
func (of *comparison) solved(ctx context.Context, row Row, problem planner.Problem) Row {
	solution, err := planner.Solve(ctx, problem, planner.Settings{TimeLimit: of.limit(), FitsOnly: of.fitsOnly})
	var large *planner.InfeasibleError
	switch {
	case errors.As(err, &large) && large.Best != nil && large.Best.LargestShare > 1: // not for the host's memory
		solution = large.Best
	case err != nil:
		row.Refused = err
		return row
	}
	row.answer(&problem, solution)
	return row
}

// tier is where a strategy may offload units.
func (of *comparison) tier(workload *costmodel.Workload) planner.Tier {
	if !workload.Strategy.Traits().Sequential || workload.Mode == costmodel.Train || of.Unconstrained || of.NoOffload {
		return ""
	}
	return of.Offload
}
