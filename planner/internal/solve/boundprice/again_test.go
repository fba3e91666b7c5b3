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

// TestWider: where walks are so narrow that wires are left out, they are made wider
// once a trial is lost, with more of the wires; they prove more then, and what they
// prove holds.
func TestWider(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	left := func(bound *Bound) (wires int) {
		for _, walk := range bound.walkers {
			wires += len(walk.Left) + len(walk.Short)
		}
		return wires
	}
	asked, wider, higher := 0, 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 71))
		problem := graphtest.Whole(random)
		least := graphtest.Least(problem)
		instance := graph.NewInstance(problem, problem.Groups())
		if math.IsInf(least, 1) || least == 0 || instance.Feasible() != nil {
			continue
		}
		bound := newWithin(ctx, netlist.New(instance), least, netlist.Width{Step: 2, All: 12})
		if bound.lost == 0 {
			continue
		}
		asked++
		before, lost, steps := left(bound), 0.0, 0
		for ; !bound.Done(least) && steps < 100; steps++ {
			bound.Improve(ctx, least, 3_000_000)
			if bound.Outgrown(least) {
				if lost == 0 {
					lost = bound.Value
				}
				bound = bound.Again(ctx, least)
				for _, set := range bound.lp.sets {
					if load := bound.loadOf(set.kind, set.items); set.load < load*(1-1e-9) {
						t.Fatalf("seed %d: a set of the load %v is known to wider walks with %v", seed, load, set.load)
					}
				}
			}
		}
		if left(bound) < before {
			wider++
		}
		if lost > 0 && bound.Value > lost*(1+1e-6) {
			higher++
		}
		if bound.Value > least*(1+1e-9) {
			t.Errorf("seed %d: %v is refuted, and %v is possible", seed, bound.Value, least)
		}
		if bound.Proof != nil {
			if err := boundcheck.Check(ctx, problem, bound.Proof); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	if asked < 70 || wider < 35 || higher < 35 {
		t.Errorf("%d problems with wires left out, %d made wider, %d proved more then", asked, wider, higher)
	}
}
