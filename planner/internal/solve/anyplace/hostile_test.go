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

func TestAnyOfHostileProblems(t *testing.T) {
	ctx := context.Background()
	possible := 0
	for seed := range uint64(500) {
		p := graphtest.Hostile(rand.New(rand.NewPCG(seed, 17)))
		least := graphtest.Least(p)
		s, err := Solve(ctx, p, graph.Settings{})
		graphtest.Judge(t, seed, p, s, err, least, true)
		if !math.IsInf(least, 1) {
			possible++
			l := netlist.New(graph.NewInstance(p, p.Groups()))
			unit, _ := boundcut.Unit(ctx, l)
			sets := boundprice.New(ctx, l, math.Inf(1))
			sets.Improve(ctx, least*1.3, 20_000_000)
			if max(unit, sets.Value) > least*(1+1e-9) {
				t.Errorf("seed %d: bounds of %v by unit and %v by sets; %v is possible", seed, unit, sets.Value, least)
			}
		}
	}
	if possible < 250 || possible > 475 {
		t.Errorf("%d of 500 problems have an answer", possible)
	}
}
