package chainmemory_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestRandom compares the solver with exhaustive search over every map that the
// rules allow, on many small models.
func TestRandom(t *testing.T) {
	t.Parallel()
	got := random(t, rand.New(rand.NewPCG(5, 6)), randomproblem.Samples(400), func(*rand.Rand, *planner.Problem) {})
	if got.solved < 290 || got.infeasible < 10 || got.conflicts < 10 || got.tied < 100 || got.small < 1 {
		t.Errorf("%+v: the draw is one-sided", got)
	}
}

// TestRandomArenas does the same for devmap's own engine. A device may then need less with one unit
// more.
func TestRandomArenas(t *testing.T) {
	t.Parallel()
	got := random(t, rand.New(rand.NewPCG(7, 8)), randomproblem.Samples(130), randomproblem.Arenas)
	if got.solved < 80 || got.infeasible < 3 || got.conflicts < 3 || got.tied < 30 {
		t.Errorf("%+v: the draw is one-sided", got)
	}
}

// tally counts results: problems solved, infeasible and in conflict; of the solved ones, those with
// ties, and those smaller than a context.
type tally struct{ solved, infeasible, conflicts, tied, small int }

func random(t *testing.T, rng *rand.Rand, samples int, change func(*rand.Rand, *planner.Problem)) (got tally) {
	t.Helper()
	for i := range samples {
		p := randomproblem.Problem(t, rng)
		change(rng, &p)
		best, idle := exhaustive.Solve(&p, true), true
		if best.Maps > 0 {
			if value, _ := exhaustive.Score(&p, best.Map, false, nil); value < best.Value {
				best, idle = exhaustive.Solve(&p, false), false // an idle device's overhead binds
				got.small++
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
			got.conflicts++
			continue
		case errors.As(err, &no):
			if best.Maps == 0 || best.Value <= 1 || !no.Proved || no.Best != sol {
				t.Fatalf("%d: %v, but the best map has a share of %v", i, err, best.Value)
			}
			got.infeasible++
		case err != nil:
			t.Fatalf("%d: %v", i, err)
		}
		if best.Maps == 0 {
			t.Fatalf("%d: map %v, but none is allowed", i, sol.Map)
		}
		value, squares := exhaustive.Score(&p, sol.Map, idle, nil)
		if !randomproblem.Near(sol.Value, best.Value) || !randomproblem.Near(value, best.Value) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value {
			t.Fatalf("%d: map %v has share %v (%v, %s, bound %v), the best %v has %v", i, sol.Map, value, sol.Value, sol.Status, sol.LowerBound, best.Map, best.Value)
		}
		if !sol.EvenProved || squares > best.Squares*(1+1e-12) {
			t.Fatalf("%d: map %v has squares %v (even %t), the best %v has %v", i, sol.Map, squares, sol.EvenProved, best.Map, best.Squares)
		}
		got.solved++
		if len(p.Graph.TiedUnits()) > 0 {
			got.tied++
		}
	}
	return got
}
