package planner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// frontOfSchedules sweeps schedules, cuts and recomputed blocks from the shortest step on. Each point
// has a share smaller than the last by a 32nd, as their number has no end. Points have gaps, so the
// front is not complete.
func frontOfSchedules(ctx context.Context, problem *Problem) (*Front, error) {
	const smaller = 31. / 32
	out := &Front{}
	budgets := problem.Topology
	var refused error // for the host's memory, before the first point
	for ended := false; !ended; ended = ctx.Err() != nil {
		sol, err := solveSchedule(ctx, problem, budgets, halfTime(ctx))
		if large := (*InfeasibleError)(nil); len(out.Points) > 0 && errors.As(err, &large) {
			return out, nil // the last point has the smallest share
		}
		if err != nil {
			return nil, cmp.Or(refused, err)
		}
		out.add(sol)
		if len(out.Points) == 0 {
			refused = cmp.Or(refused, sol.hosted())
		}
		out.Complete = false
		budgets = scheduletime.Part(problem.Topology, min(1, sol.LargestShare)*smaller)
	}
	if len(out.Points) == 0 {
		return nil, refused
	}
	return out, nil
}

// halfTime gives a search half of the time that is left before the deadline.
func halfTime(ctx context.Context) Settings {
	end, _ := ctx.Deadline()
	return Settings{TimeLimit: max(time.Until(end)/2, time.Millisecond)}
}
