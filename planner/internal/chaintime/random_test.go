package chaintime_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimeRandom compares the shortest step, and the smallest largest share with it, with
// exhaustive search over all contiguous maps. Equal devices are in device order, others in any
// order.
func TestTimeRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	var solved, infeasible, unequal, ordered int
	for i := range randomproblem.Samples(230) {
		p := randomproblem.Timed(t, rng)
		if len(p.Graph.Units) > 6 && len(p.Topology.Devices) > 3 {
			continue // exhaustive search takes too long
		}
		p.Objective = planner.Time
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		var constraint *planner.ConstraintError
		if errors.As(err, &constraint) {
			continue
		}
		points := exhaustive.Points(&p, !randomproblem.Uniform(p.Topology))
		best := exhaustive.Point{Seconds: math.Inf(1)}
		for _, pt := range points {
			if pt.Seconds < best.Seconds*(1-1e-9) || pt.Seconds <= best.Seconds*(1+1e-9) && pt.Share < best.Share {
				best = pt
			}
		}
		if len(points) == 0 {
			if err == nil {
				t.Fatalf("%d: %v, but nothing fits", i, sol.Map)
			}
			infeasible++
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v, but %v fits in %v s", i, err, best.Map, best.Seconds)
		}
		if !randomproblem.Close(sol.Value, best.Seconds) || !randomproblem.Close(sol.LargestShare, best.Share) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value {
			t.Fatalf("%d: %v takes %v s at %v (%s, bound %v); %v takes %v s at %v", i, sol.Map, sol.Value, sol.LargestShare, sol.Status, sol.LowerBound, best.Map, best.Seconds, best.Share)
		}
		solved++
		if !randomproblem.Uniform(p.Topology) {
			unequal++
			for u := 1; u < len(sol.Map); u++ {
				if sol.Map[u] < sol.Map[u-1] {
					ordered++
					break
				}
			}
		}
	}
	t.Logf("%d solved, %d infeasible, %d with devices that differ, %d of them out of order", solved, infeasible, unequal, ordered)
	if solved < 80 || infeasible < 6 || unequal < 30 || ordered < 8 {
		t.Errorf("%d solved, %d infeasible, %d with devices that differ, %d of them out of order: the draw is one-sided", solved, infeasible, unequal, ordered)
	}
}
