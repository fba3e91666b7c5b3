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

// TestHalves: from any answer on two like devices each better one is one, and what
// is proved to be the least is the least of all, as other code checks too.
func TestHalves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	proved, better, asked, bound := 0, 0, 0, 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 41))
		problem := graphtest.Random(random)
		if seed%2 == 0 {
			problem = graphtest.Whole(random)
		}
		problem.Kinds = problem.Kinds[:1]
		problem.Kinds[0].Count = 2
		for node := range problem.Nodes {
			problem.Nodes[node].Time = problem.Nodes[node].Time[:1]
		}
		instance := graph.NewInstance(problem, problem.Groups())
		least := graphtest.Least(problem)
		if math.IsInf(least, 1) || instance.Feasible() != nil {
			continue
		}
		nets := netlist.New(instance)
		place, value := make([]int32, len(nets.Nodes)), math.Inf(1)
		for tries := 0; math.IsInf(value, 1) && tries < 1000; tries++ {
			for item := range place {
				place[item] = int32(random.IntN(2))
			}
			if _, load, err := problem.Score(instance.Places(place)); err == nil {
				value = load
			}
		}
		if math.IsInf(value, 1) {
			continue
		}
		asked++
		halves := NewHalves(ctx, nets, value)
		next, proof := halves.Below(ctx, place)
		for next != nil {
			_, load, err := problem.Score(instance.Places(next))
			if err != nil || load >= value {
				t.Fatalf("seed %d: %v after %v: %v", seed, load, value, err)
			}
			value = load
			better++
			next, proof = halves.Below(ctx, next)
		}
		if halves.sized != nil {
			bound++
		}
		if proof == nil {
			continue
		}
		proved++
		if value > least*(1+1e-9) {
			t.Errorf("seed %d: %v is said to be the least, which is %v", seed, value, least)
		}
		if err := boundcheck.Check(ctx, problem, proof); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if proved < asked/2 || asked < 200 || bound < 50 || better < asked/2 {
		t.Errorf("%d of %d proved, %d with a capacity, %d better answers", proved, asked, bound, better)
	}
}
