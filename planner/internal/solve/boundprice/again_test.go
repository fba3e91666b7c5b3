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

// TestAgain: with walks laid out anew for a lower answer nothing that was proved is
// lost, what is proved after that holds, and there are fewer states.
func TestAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	total := func(bound *Bound) (states int) {
		for _, walk := range bound.walkers {
			states += walk.total
		}
		return states
	}
	asked, fewer := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 61))
		problem := graphtest.Whole(random)
		least := graphtest.Least(problem)
		instance := graph.NewInstance(problem, problem.Groups())
		if math.IsInf(least, 1) || least == 0 || instance.Feasible() != nil {
			continue
		}
		asked++
		bound := New(ctx, netlist.New(instance), 4*least)
		bound.Improve(ctx, 4*least, 1_000_000)
		before, states := bound.Value, total(bound)
		if !bound.Outgrown(least) || bound.Outgrown(4*least) {
			t.Fatalf("seed %d: walks for %v are outgrown: by %v %v, by themselves %v", seed, 4*least, least, bound.Outgrown(least), bound.Outgrown(4*least))
		}
		bound = bound.Again(ctx, least)
		if total(bound) < states {
			fewer++
		}
		bound.Improve(ctx, least, 10_000_000)
		if bound.Value < before || bound.Value > least*(1+1e-9) {
			t.Errorf("seed %d: %v is refuted, %v was before; %v is possible", seed, bound.Value, before, least)
		}
		if bound.Proof == nil {
			continue
		}
		if err := boundcheck.Check(ctx, problem, bound.Proof); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if asked < 150 || fewer < 25 {
		t.Errorf("%d problems, %d with fewer states", asked, fewer)
	}
}
