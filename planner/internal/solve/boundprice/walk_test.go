package boundprice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestPrice: no set that a device can take within a load and its capacity is
// worth more than what the walk says, at any prices, with few labels and with
// many; with many and no slack that is exact, and the sets handed back are what
// they are said to be.
func TestPrice(t *testing.T) {
	t.Parallel()
	exact, sized, dear := 0, 0, 0
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 22))
		problem := graphtest.Whole(random)
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		limit := float64(1 + random.IntN(30))
		bound := New(context.Background(), nets, []float64{math.Inf(1), limit}[random.IntN(2)])
		prices := make([]float64, len(nets.Nodes))
		for item := range prices {
			prices[item] = float64(random.IntN(9) - 2)
		}
		for at, walk := range bound.walkers {
			need := float64(random.IntN(4)) * float64(random.IntN(4))
			walk.cells = []int{1, 2, 1000}[random.IntN(3)]
			kind, truth := bound.kinds[at], 0.0
			graphtest.EachSet(len(nets.Nodes), func(has func(int) bool) {
				worth, size := 0.0, 0.0
				for item := range prices {
					if has(item) {
						worth += prices[item]
						size += nets.Size[item]
					}
				}
				if size <= nets.Capacity[kind] && graphtest.LoadOf(nets, kind, has) <= limit {
					truth = max(truth, worth)
				}
			})
			sets, _ := walk.price(context.Background(), prices, limit, need)
			if len(sets) == 0 && need < truth*(1-1e-9) {
				t.Fatalf("seed %d, kind %d: a set is worth %v, and none is said to be worth more than %v", seed, kind, truth, need)
			}
			if walk.cells == 1000 {
				if len(sets) > 0 && need >= truth {
					t.Fatalf("seed %d, kind %d: the most is %v, and a set is said to be worth more than %v: %+v", seed, kind, truth, need, sets)
				}
				exact++
			}
			for _, set := range sets {
				if load := bound.loadOf(at, set.items); set.fits && (walk.cells == 1000 && set.worth > truth+1e-9 || math.Abs(load-set.load) > 1e-9 || load > limit) {
					t.Fatalf("seed %d: a set of worth %v and load %v, said to be %v; the most is %v within %v", seed, set.worth, load, set.load, truth, limit)
				}
				dear++
			}
			if !math.IsInf(walk.room, 1) {
				sized++
			}
		}
	}
	if exact < 200 || sized < 300 || dear < 300 {
		t.Errorf("%d exact, %d with a capacity, %d sets", exact, sized, dear)
	}
}

// TestBoundOfBins: 25 large items on six devices that hold four each, as in
// bert24: only the fractions' dual sees that.
func TestBoundOfBins(t *testing.T) {
	problem := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 6, Capacity: math.Inf(1)}}}
	for node := range 25 {
		problem.Nodes = append(problem.Nodes, graph.Node{Name: fmt.Sprint("n", node), Time: []float64{3.5 + 0.004*float64(node)}, Transfer: 0.002, Group: node})
		if node > 0 {
			problem.Edges = append(problem.Edges, [2]int{node - 1, node})
		}
	}
	bound := New(context.Background(), netlist.New(graph.NewInstance(problem, problem.Groups())), math.Inf(1))
	bound.Improve(context.Background(), 18, 100_000_000)
	if least := 5*3.5 + 0.004*10; bound.Value < least*0.999 || bound.Value > least+0.01 {
		t.Errorf("a bound of %v; five items on one device have %v and transfers at least", bound.Value, least)
	}
}

func TestBoundOfWideGraphs(t *testing.T) {
	// Every node reads every earlier one: the frontier is too wide for all
	// wires, and the bounds must hold without them.
	problem := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: math.Inf(1)}}}
	for node := range 30 {
		problem.Nodes = append(problem.Nodes, graph.Node{Name: fmt.Sprint("n", node), Time: []float64{float64(1 + node%7)}, Transfer: 0.01, Group: node})
		for before := range node {
			problem.Edges = append(problem.Edges, [2]int{before, node})
		}
	}
	bound := New(context.Background(), netlist.New(graph.NewInstance(problem, problem.Groups())), math.Inf(1))
	bound.Improve(context.Background(), 60, 100_000_000)
	// The times sum to 115: one device has 58 at least, and 58 with 0.01 for
	// each of 29 wires at most is possible.
	if bound.Value < 57.5 || bound.Value > 58.29 {
		t.Errorf("a bound of %v, where 58.29 is possible", bound.Value)
	}
}
