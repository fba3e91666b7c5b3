package assignmemory

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// What the tests of bounds ask of the search's parts, so that each is held to
// the truth by itself and not through an answer.

// Bounds are the bounds of the largest share of any assignment.
func Bounds(ctx context.Context, in *instance.Instance) (map[string]float64, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return nil, err
	}
	a := newSearch(ctx, problem, instance.Limits{})
	out := map[string]float64{"largest unit": a.unit.Float(), "average": a.average}
	a.relax()
	out["relaxed search"] = a.relaxed
	return out, nil
}

// Spare is the least that any moment of the step leaves of the devices' room,
// under caps of a share: not negative where a map has that share.
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

// Refutes asks whether some map of any form has all shares below a limit, and
// gives what is then said of every map: its bound, and whether the best map
// that was known before is said to be the best there is.
func Refutes(ctx context.Context, in *instance.Instance, limit float64) (no bool, bound float64, proved bool, err error) {
	problem, err := assignment.New(in)
	if err != nil {
		return false, 0, false, err
	}
	a := newSearch(ctx, problem, instance.Limits{})
	a.greedy()
	const one = 1 << 40
	v := a.ask(chain.Share{Peak: int64(limit * one), Budget: one}, 1_000_000)
	return v == refuted, max(a.average, a.refuted), a.proved, nil
}
