package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcut"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

func TestAnyIsBestOfAllAssignments(t *testing.T) {
	infeasible := 0
	for seed := range uint64(300) {
		p := graphtest.Random(rand.New(rand.NewPCG(seed, 7)))
		least := graphtest.Least(p)
		sol, err := Solve(context.Background(), p, graph.Settings{Seed: seed})
		if math.IsInf(least, 1) {
			if err == nil {
				t.Errorf("seed %d: an answer of %v where there is none", seed, sol.Value)
			}
			infeasible++
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v; %v is possible", seed, err, least)
			continue
		}
		if math.Abs(sol.Value-least) > 1e-9*least || sol.LowerBound > least*(1+1e-9) || !sol.Optimal() {
			t.Errorf("seed %d: %v, bound %v (%s), optimal %v; the least is %v", seed, sol.Value, sol.LowerBound, sol.Bound, sol.Optimal(), least)
		}
	}
	if infeasible == 0 || infeasible > 150 {
		t.Errorf("%d of 300 problems have no answer", infeasible)
	}
}

// The bounds are what a wrong answer would hide behind, so each is held to the
// truth alone.
func TestBoundsStayBelowTheLeast(t *testing.T) {
	ctx := context.Background()
	tight := 0
	for seed := range uint64(300) {
		p := graphtest.Random(rand.New(rand.NewPCG(seed, 11)))
		least := graphtest.Least(p)
		in := graph.NewInstance(p, p.Groups())
		if math.IsInf(least, 1) || in.Feasible() != nil {
			continue
		}
		l := netlist.New(in)
		unit, _ := boundcut.Unit(ctx, l)
		sets := boundprice.New(ctx, l, math.Inf(1))
		sets.Improve(ctx, least*1.5, 100_000_000)
		for name, bound := range map[string]float64{"unit": unit, "sets": sets.Value} {
			if bound > least*(1+1e-9) {
				t.Errorf("seed %d: the bound by %s is %v and %v is possible", seed, name, bound, least)
			}
		}
		if max(unit, sets.Value) > 0.9*least {
			tight++
		}
	}
	if tight < 100 {
		t.Errorf("only %d bounds are within a tenth of the least", tight)
	}
}

// Tiny problems are tried out whole, so the search is asked by itself here. It
// may miss the least, seldom, and must not be below it.
func TestSearchFindsTheLeast(t *testing.T) {
	ctx := context.Background()
	solved, found := 0, 0
	for seed := range uint64(30) {
		p := graphtest.Random(rand.New(rand.NewPCG(seed, 13)))
		least := graphtest.Least(p)
		in := graph.NewInstance(p, p.Groups())
		if math.IsInf(least, 1) || in.Feasible() != nil {
			continue
		}
		s := newAnywhere(in, graph.Settings{})
		s.search(ctx, s.newBeside())
		solved++
		if sol, err := s.result(ctx); err != nil {
			t.Logf("seed %d: %v; %v is possible", seed, err, least)
		} else if sol.Value < least*(1-1e-9) || sol.LowerBound > least*(1+1e-9) {
			t.Errorf("seed %d: %v, bound %v; the least is %v", seed, sol.Value, sol.LowerBound, least)
		} else if sol.Value < least*(1+1e-9) {
			found++
		}
	}
	if found < solved*9/10 || solved < 15 {
		t.Errorf("the search found the least of %d problems of %d", found, solved)
	}
}
