package planner_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestUnconstrainedRandom compares the search for any assignment with exhaustive search, on small
// models with ties, pins and together-groups. No bound is above the optimum. The answer is the
// optimum, and not above the contiguous one.
func TestUnconstrainedRandom(t *testing.T) {
	t.Parallel()
	const tolerance = 1e-9 // for bounds in floating point
	rng := rand.New(rand.NewPCG(7, 8))
	var solved, infeasible, conflicts, gained, tied int
	for i := range randomproblem.Samples(200) {
		p := randomproblem.Problem(t, rng)
		contiguous, _ := planner.Solve(t.Context(), p, planner.Settings{})
		p.Unconstrained = true
		best := exhaustive.Solve(&p, false)
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		var no *planner.InfeasibleError
		var constraint *planner.ConstraintError
		switch {
		case errors.As(err, &constraint):
			if best.Maps > 0 {
				t.Fatalf("%d: %v, but %d maps are allowed, such as %v", i, err, best.Maps, best.Map)
			}
			conflicts++
			continue
		case errors.As(err, &no):
			if best.Value <= 1 || !no.Proved {
				t.Fatalf("%d: %v, but the best map has a share of %v", i, err, best.Value)
			}
			infeasible++
		case err != nil:
			t.Fatalf("%d: %v", i, err)
		}
		if best.Maps == 0 {
			t.Fatalf("%d: map %v, but none is allowed", i, sol.Map)
		}
		if value, _ := exhaustive.Score(&p, sol.Map, false, nil); !randomproblem.Near(value, best.Value) || !randomproblem.Near(sol.Value, best.Value) || sol.Status != planner.Optimal {
			t.Fatalf("%d: map %v has share %v (%v, %s, bound %v), the best %v has %v", i, sol.Map, value, sol.Value, sol.Status, sol.LowerBound, best.Map, best.Value)
		}
		for _, b := range sol.Bounds {
			if b.Value > best.Value*(1+tolerance) {
				t.Fatalf("%d: the bound %q (%s) says %v, the best map %v has %v", i, b.Name, b.What, b.Value, best.Map, best.Value)
			}
		}
		solved++
		if contiguous != nil {
			if sol.Value > contiguous.Value*(1+tolerance) {
				t.Fatalf("%d: map %v has share %v, the contiguous %v has %v", i, sol.Map, sol.Value, contiguous.Map, contiguous.Value)
			}
			if sol.Value < contiguous.Value*(1-tolerance) {
				gained++
			}
		}
		if len(p.Graph.TiedUnits()) > 0 {
			tied++
		}
	}
	t.Logf("%d solved, %d of them infeasible and %d tied, %d conflicts, %d better than contiguous", solved, infeasible, tied, conflicts, gained)
	if solved < 140 || infeasible < 6 || conflicts < 2 || tied < 70 || gained < 20 {
		t.Errorf("%d solved, %d infeasible, %d conflicts, %d gained, %d tied: the draw is one-sided", solved, infeasible, conflicts, gained, tied)
	}
}
