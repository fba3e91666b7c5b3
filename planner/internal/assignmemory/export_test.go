package assignmemory

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// The tests of bounds call the search's parts here, so that they check each
// part and not only an answer.

// Bounds are the bounds of the largest share of any assignment.
func Bounds(ctx context.Context, in *instance.Instance) (map[string]float64, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return nil, err
	}
	a := newSearch(ctx, problem, instance.Limits{})
	out := map[string]float64{"largest unit": a.unit.Float(), "average": a.average}
	a.relax(false)
	a.relax(true)
	out["relaxed search"] = a.relaxed
	return out, nil
}

// Spare returns the least free memory of the devices at any moment of the step, under caps of a
// share. It is not negative if a map has that share.
func Spare(in *instance.Instance, share float64) (int64, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return 0, err
	}
	least := int64(math.MaxInt64)
	for _, m := range problem.Moments() {
		least = min(least, m.Spare(problem, problem.Caps(share)))
	}
	return least, nil
}

// InfeasibleBelow reports that no map of any form has all shares below a limit.
// It also returns the bound on every map, and whether that proves the incumbent
// from before optimal.
func InfeasibleBelow(ctx context.Context, in *instance.Instance, limit float64) (no bool, bound float64, proved bool, err error) {
	problem, err := assignment.New(in)
	if err != nil {
		return false, 0, false, err
	}
	a := newSearch(ctx, problem, instance.Limits{})
	a.greedy()
	const one = 1 << 40
	v := a.ask(chain.Share{Peak: int64(limit * one), Budget: one}, 1_000_000)
	return v == infeasible, max(a.average, a.infeasible), a.proved, nil
}
