package planner_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimeUnconstrainedRandom compares the shortest step of any assignment with exhaustive search,
// also with waits for the host. No bound is above the optimum and no answer below it; most answers
// are optimal.
func TestTimeUnconstrainedRandom(t *testing.T) {
	t.Parallel()
	const tolerance = 1e-9 // for sums in floating point
	rng := rand.New(rand.NewPCG(41, 42))
	var solved, shortest, proved, gained, infeasible int
	for i := range randomproblem.Samples(170) {
		p := randomproblem.Timed(t, rng)
		p.Unconstrained, p.Objective = true, planner.Time
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 5000 {
			continue // exhaustive search takes too long
		}
		if i%3 == 0 {
			p.Costs.Workload.MicroBatches = 1 + rng.Int64N(3)
			for d := range p.Topology.Devices {
				dev := &p.Topology.Devices[d]
				dev.IssueSeconds, dev.BackwardIssueSeconds = float64(1+i%5)/2, float64(1+i%2)/2
				for u := range p.Costs.Units {
					p.Costs.Units[u].Work.Forward.Kernels = float64(u % 3)
				}
			}
		}
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		var constraint *planner.ConstraintError
		if errors.As(err, &constraint) {
			continue
		}
		best := exhaustive.Point{Seconds: math.Inf(1)}
		for _, pt := range exhaustive.Points(&p, true) {
			if pt.Seconds < best.Seconds {
				best = pt
			}
		}
		if best.Map == nil {
			if err == nil {
				t.Fatalf("%d: %v, but nothing fits", i, sol.Map)
			}
			infeasible++
			continue
		}
		var links *instance.LinkError
		if errors.As(err, &links) {
			solved++ // a map was found, but none with links
			continue
		}
		if err != nil {
			t.Fatalf("%d: %v, but %v fits in %v s", i, err, best.Map, best.Seconds)
		}
		for _, b := range sol.Bounds {
			if b.Value > best.Seconds*(1+tolerance) {
				t.Fatalf("%d: the bound %q says %v, %v takes %v", i, b.Name, b.Value, best.Map, best.Seconds)
			}
		}
		if sol.Value < best.Seconds*(1-tolerance) || sol.LowerBound > best.Seconds*(1+tolerance) {
			t.Fatalf("%d: %v takes %v s, at least %v; %v takes %v", i, sol.Map, sol.Value, sol.LowerBound, best.Map, best.Seconds)
		}
		solved++
		if randomproblem.Close(sol.Value, best.Seconds) {
			shortest++
		}
		if sol.Status == planner.Optimal {
			proved++
		}
		if !randomproblem.Instance(t, &p).Contiguous(sol.Map) {
			gained++
		}
	}
	t.Logf("%d solved, %d the shortest, %d proved, %d not contiguous, %d infeasible", solved, shortest, proved, gained, infeasible)
	if solved < 65 || 10*shortest < 9*solved || gained < 6 || infeasible < 6 {
		t.Errorf("%d solved, %d the shortest, %d not contiguous, %d infeasible: too few", solved, shortest, gained, infeasible)
	}
}
