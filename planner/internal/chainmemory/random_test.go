package chainmemory_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/brute"
	"github.com/devmap-dev/devmap/planner/internal/drawn"
)

// TestRandom holds the solver to brute force over every map that the rules
// allow, on many small models.
func TestRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	var solved, infeasible, conflicts, tied, small int
	for i := range 1500 {
		p := drawn.Problem(t, rng)
		best, idle := brute.Solve(&p, true), true
		if best.Maps > 0 {
			if value, _ := brute.Score(&p, best.Map, false, nil); value < best.Value {
				best, idle = brute.Solve(&p, false), false // an idle device's overhead binds
				small++
			}
		}
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
			if best.Maps == 0 || best.Value <= 1 || !no.Proved || no.Best != sol {
				t.Fatalf("%d: %v, but the best map has a share of %v", i, err, best.Value)
			}
			infeasible++
		case err != nil:
			t.Fatalf("%d: %v", i, err)
		}
		if best.Maps == 0 {
			t.Fatalf("%d: map %v, but none is allowed", i, sol.Map)
		}
		value, squares := brute.Score(&p, sol.Map, idle, nil)
		if !drawn.Near(sol.Value, best.Value) || !drawn.Near(value, best.Value) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value {
			t.Fatalf("%d: map %v has share %v (%v, %s, bound %v), the best %v has %v", i, sol.Map, value, sol.Value, sol.Status, sol.LowerBound, best.Map, best.Value)
		}
		if !sol.EvenProved || squares > best.Squares*(1+1e-12) {
			t.Fatalf("%d: map %v has squares %v (even %t), the best %v has %v", i, sol.Map, squares, sol.EvenProved, best.Map, best.Squares)
		}
		solved++
		if len(p.Graph.TiedUnits()) > 0 {
			tied++
		}
	}
	if solved < 1100 || infeasible < 40 || conflicts < 40 || tied < 400 || small < 4 {
		t.Errorf("%d solved, %d of them infeasible and %d tied, %d conflicts, %d smaller than a context: the draw is one-sided", solved, infeasible, tied, conflicts, small)
	}
}
