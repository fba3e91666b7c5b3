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

// TestHalves: from any answer on two like devices each better one is one, what is proved to
// be the least is the least of all, and nothing that is possible is refuted, as other code
// checks too; where sets are told apart by little that is so from walk to finer walk.
func TestHalves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	proved, better, asked, bound, partly := 0, 0, 0, 0, 0
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
		if seed%3 == 0 {
			halves.fine = (1 + random.IntN(3)) * halves.plain.total // sets are told apart by little at first
		}
		if halves.sized != nil {
			bound++
		}
		best, closed, part := finish(ctx, t, halves, place, least)
		if _, load, err := problem.Score(instance.Places(best)); err != nil || load > value || closed && load > least*(1+1e-9) {
			t.Errorf("seed %d: an answer of %v (%v) after %v, said to be the least: %v; that is %v", seed, load, err, value, closed, least)
		} else if load < value {
			better++
		}
		if closed {
			proved++
		}
		partly += part
	}
	if proved < asked/2 || asked < 200 || bound < 50 || better < asked/2 || partly < 50 {
		t.Errorf("%d of %d proved, %d with a capacity, %d better answers, %d proofs of less", proved, asked, bound, better, partly)
	}
}

// finish goes from answer to better answer, and makes walks finer where they find none,
// until there is a proof that none is left or no finer walk. It counts the proofs that
// answers of less than a lower load are none, and holds all to what is known.
func finish(ctx context.Context, t *testing.T, halves *Halves, best []int32, least float64) (place []int32, closed bool, partly int) {
	t.Helper()
	for {
		next, proof := halves.Below(ctx, best)
		if next != nil {
			best = next
			continue
		}
		if proof != nil {
			if err := boundcheck.Check(ctx, halves.Problem, proof); err != nil || proof.Limit >= least {
				t.Errorf("%v is said to be refuted, where the least is %v: %v", proof.Limit, least, err)
			}
			if halves.Closed(proof.Limit) {
				return best, true, partly
			}
			partly++
		}
		if !halves.Finer() {
			return best, false, partly
		}
	}
}
