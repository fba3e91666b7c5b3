package planner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
)

// frontOfSchedules sweeps schedules, cuts and recomputed blocks from the shortest step on. Each point
// has a share smaller than the last by a 32nd, as their number has no end. Points have gaps, so the
// front is not complete.
func frontOfSchedules(ctx context.Context, problem *Problem, settings Settings) (*Front, error) {
	out := &Front{}
	budgets := problem.Topology
	for ended := false; !ended; ended = ctx.Err() != nil {
		settings.TimeLimit = DefaultTimeLimit
		if end, ok := ctx.Deadline(); ok {
			settings.TimeLimit = max(time.Until(end)/2, time.Millisecond)
		}
		sol, err := scheduledWithin(ctx, problem, budgets, settings)
		if large := (*InfeasibleError)(nil); len(out.Points) > 0 && errors.As(err, &large) {
			return out, nil // the last point has the smallest share
		}
		if err != nil {
			return nil, err
		}
		out.add(sol)
		out.Complete = false
		budgets = budgetsBelow(problem, sol)
	}
	return out, nil
}

// budgetsBelow returns the problem's GPUs with budgets a 32nd below the largest share of a solution.
func budgetsBelow(problem *Problem, solution *Solution) *costmodel.Topology {
	const smaller = 31. / 32
	next := *problem.Topology
	next.Devices = slices.Clone(next.Devices)
	for i := range next.Devices {
		device := &next.Devices[i]
		device.ReservedBytes = device.CapacityBytes - int64(float64(problem.Topology.Devices[i].Budget())*min(1, solution.LargestShare)*smaller)
	}
	return &next
}
