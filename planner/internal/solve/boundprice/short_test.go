package boundprice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestShortWires: where walks have to be narrow, wires are shortened; what is
// proved with what is left of them is below the least load, and is proved for
// other code too, which is told what was left.
func TestShortWires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	short, proved, needed := 0, 0, 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 51))
		problem := graphtest.Random(random)
		if seed%2 == 0 {
			problem = graphtest.Whole(random)
		}
		instance := graph.NewInstance(problem, problem.Groups())
		least := graphtest.Least(problem)
		if math.IsInf(least, 1) || instance.Feasible() != nil {
			continue
		}
		bound := newWithin(ctx, netlist.New(instance), math.Inf(1), netlist.Width{Step: 3, All: 20})
		wires := 0
		for _, walk := range bound.walkers {
			wires += len(walk.Short)
		}
		if wires == 0 {
			continue
		}
		short++
		bound.Improve(ctx, least*1.2, 20_000_000)
		if bound.Value > least*(1+1e-9) {
			t.Errorf("seed %d: %v is said to be refuted, and %v is possible", seed, bound.Value, least)
		}
		if bound.Proof == nil {
			continue
		}
		proved++
		if err := boundcheck.Check(ctx, problem, bound.Proof); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for kind := range bound.Proof.Kinds {
			for i := range bound.Proof.Kinds[kind].Short {
				bound.Proof.Kinds[kind].Short[i].Kept = nil
			}
		}
		if boundcheck.Check(ctx, problem, bound.Proof) != nil {
			needed++
		}
	}
	if short < 60 || proved < 50 || needed < 20 {
		t.Errorf("%d with short wires, %d proved, %d of them by those", short, proved, needed)
	}
}
