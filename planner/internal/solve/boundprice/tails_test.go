package boundprice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestTails: at any price of a byte the walk from the end is worth what the dearest set
// is within the limit, where bytes beyond the room cost that price and those of it that
// are left earn it; tails that are joined are worth no less; the sets behind them are what
// they are said to be.
func TestTails(t *testing.T) {
	t.Parallel()
	exact, none, traced, joined := 0, 0, 0, 0
	for seed := range uint64(900) {
		random := rand.New(rand.NewPCG(seed, 71))
		problem := graphtest.Whole(random)
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		limit := float64(1 + random.IntN(30))
		bound := New(context.Background(), nets, limit)
		prices := make([]float64, len(nets.Nodes))
		for item := range prices {
			prices[item] = float64(random.IntN(9) - 2)
		}
		for at, walk := range bound.walkers {
			if math.IsInf(walk.room, 1) {
				continue
			}
			walk.cells = []int{1, 1000}[random.IntN(2)]
			walk.priced, walk.nextMu = true, []float64{0, 0.25, 1, 3}[random.IntN(4)]
			truth := dearest(bound, at, prices, limit)
			need := truth * []float64{0.5, 0.9, 1.1}[random.IntN(3)]
			walk.relax(walk, prices, limit)
			if !walk.back(context.Background(), prices, limit, need, math.MaxInt) {
				t.Fatalf("seed %d: too many tails", seed)
			}
			most := walk.most()
			switch {
			case need < truth && most < truth-1e-9:
				t.Fatalf("seed %d: %v is the most, and %v is said to be", seed, truth, most)
			case need >= truth && walk.cells == 1000 && most > need:
				t.Fatalf("seed %d: %v is the most, and %v is said to be, more than %v", seed, truth, most, need)
			case need >= truth:
				none++
			case walk.cells == 1000 && math.Abs(most-truth) > 1e-9:
				t.Fatalf("seed %d: %v is the most, and %v is said to be", seed, truth, most)
			case walk.cells == 1000:
				exact++
			default:
				joined++
			}
			for _, set := range walk.traced(prices, limit) {
				if load := bound.loadOf(at, set.items); math.Abs(load-set.load) > 1e-9 || set.fits && load > limit {
					t.Fatalf("seed %d: a load of %v, said to be %v", seed, load, set.load)
				}
				traced++
			}
		}
	}
	if exact < 60 || none < 60 || joined < 60 || traced < 150 {
		t.Errorf("%d exact, %d with none, %d joined, %d sets", exact, none, joined, traced)
	}
}

// dearest is the most that any set within the limit is worth at a walker's next price of
// a byte.
func dearest(bound *Bound, at int, prices []float64, limit float64) float64 {
	walk, most := bound.walkers[at], math.Inf(-1)
	graphtest.EachSet(len(prices), func(has func(int) bool) {
		worth := walk.nextMu * walk.room
		for item := range prices {
			if has(item) {
				worth += prices[item] - walk.nextMu*bound.Size[item]
			}
		}
		if graphtest.LoadOf(bound.Netlist, bound.kinds[at], has) <= limit {
			most = max(most, worth)
		}
	})
	return most
}
