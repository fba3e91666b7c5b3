package stagesearch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// posed is a drawn problem without groups, in the form of the search.
func posed(random *rand.Rand) (*graph.Problem, *Chain, []int) {
	problem := graphtest.NearChain(random, 30+random.IntN(30), 20, graph.Kind{Count: 2 + random.IntN(3), Capacity: 900}, graph.Kind{Count: random.IntN(3), Capacity: math.Inf(1), FreeTransfers: true})
	chain, order := chainOf(problem)
	return problem, chain, order
}

// chainOf a problem without groups, and one of its linear extensions.
func chainOf(problem *graph.Problem) (*Chain, []int) {
	before, after := make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
	}
	order := make([]int, len(problem.Nodes))
	for item := range order {
		order[item] = item
	}
	return NewChain(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after), order
}

// TestMoves: whatever moves were made, the sums kept are those of the
// definitions and the devices can be put in order.
func TestMoves(t *testing.T) {
	t.Parallel()
	tight, everything := 0, make(map[int]bool)
	for group := range 60 {
		everything[group] = true
	}
	for seed := range uint64(60) {
		problem, chain, order := posed(rand.New(rand.NewPCG(seed, 31)))
		search := New(chain, seed, 1)
		place := make([]int, len(order))
		chain.Spread(order, place)
		search.Start(place)
		search.unit, search.blind = 100, seed%3 == 0
		for range 40 {
			for range 50 {
				search.step(1)
			}
			for item, device := range search.place {
				place[item] = search.number[device]
			}
			if !graphtest.InSomeOrder(problem, place, everything) {
				t.Fatalf("seed %d: %v is in no order", seed, place)
			}
			loads, _, err := problem.Score(place)
			if err != nil {
				tight++
			}
			for device, load := range loads {
				if at := slices.Index(search.number, device); math.Abs(load.Total()-search.load[at]) > 1e-9 || math.Abs(load.Size-search.bytes[at]) > 1e-9 {
					t.Fatalf("seed %d: device %d has %v to do, said to be %v", seed, device, load, search.load[at])
				}
			}
			search.refresh()
			if search.found() {
				best, largest := search.Best()
				if _, scored, err := problem.Score(best); err != nil || math.Abs(scored-largest) > 1e-6 {
					t.Fatalf("seed %d: the best is %v, scored %v, %v", seed, largest, scored, err)
				}
			}
		}
	}
	if tight < 60 {
		t.Errorf("%d placements over a capacity: the test tries nothing", tight)
	}
}

// TestRounds: rounds find more than a start, the same each time.
func TestRounds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		problem, chain, order := posed(rand.New(rand.NewPCG(seed, 32)))
		start := make([]int, len(order))
		chain.Spread(order, start)
		_, first, _ := problem.Score(start)
		var answers [2][]int
		for i := range answers {
			search := New(chain, 7, 1)
			search.Start(start)
			for range 3 {
				search.Round(context.Background())
			}
			answers[i], _ = search.Best()
		}
		_, largest, err := problem.Score(answers[0])
		if err != nil || largest > 0.9*first || !slices.Equal(answers[0], answers[1]) {
			t.Errorf("seed %d: from %v to %v, %v", seed, first, largest, err)
		}
	}
}

// TestUnevenAndTight: where one device makes the largest load, the others must
// not fill beyond their capacities for nothing. Where they may, these rounds end
// at 43.1.
func TestUnevenAndTight(t *testing.T) {
	t.Parallel()
	line := dags.Line{Mode: "contiguous", Kind: "experts", Nodes: 219, Devices: 16, Capacity: 1.05, Transfers: 0.8, Seed: 3_000_004}
	problem, err := line.Anew()
	if err != nil {
		t.Fatal(err)
	}
	chain, order := chainOf(problem)
	start := make([]int, len(order))
	chain.Spread(order, start)
	search := New(chain, 1, 1)
	search.Start(start)
	for range 2 {
		search.Round(context.Background())
	}
	place, _ := search.Best()
	if place == nil {
		t.Fatal("no placement that keeps the capacities")
	}
	if _, largest, err := problem.Score(place); err != nil || largest > 42 {
		t.Errorf("%v, %v; want a largest load below 42", largest, err)
	}
}
