package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// A pair is divided as well as the best of all ways to divide it, and left alone where
// none is better: what is left out on the way leads to none.
func TestPairsAreDividedTheBestWay(t *testing.T) {
	ctx := context.Background()
	divided, left := 0, 0
	for seed := range uint64(80) {
		random := rand.New(rand.NewPCG(seed, 17))
		problem := graphtest.NearChain(random, 11, 8, graph.Kind{Count: 2, Capacity: math.Inf(1)},
			graph.Kind{Count: 1, Capacity: math.Inf(1), FreeTransfers: seed%4 == 0})
		call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
		const fine = 1 << 14
		split := newSplitter(ctx, call.Netlist, fine)
		anneal := newAnnealer(newPlacement(call.Netlist, make([]int32, len(call.Nodes))), random)
		anneal.unit, anneal.squarings = 100, 1+random.IntN(4)
		place := make([]int32, len(call.Nodes))
		for item := range place {
			place[item] = int32(random.IntN(3))
		}
		anneal.refresh(place)
		for range 200 * int(seed%3) { // some are good already
			anneal.step(1e-9)
		}
		copy(place, anneal.place)
		one, two := int32(0), int32(1+random.IntN(2))
		before := anneal.energies[one] + anneal.energies[two]
		least := leastOfPair(anneal, place, one, two)
		anneal.refresh(place)
		better, _ := split.divide(ctx, anneal, one, two, nil)
		after := anneal.energies[one] + anneal.energies[two]
		if better {
			divided++
		} else {
			left++
		}
		if least < before*(1-1e-6) != better || after > max(least, 1e-9)*(1+1e-6) && better {
			t.Errorf("seed %d: %v, divided %v from %v; the least is %v", seed, after, better, before, least)
		}
	}
	if divided < 30 || left < 10 {
		t.Errorf("%d pairs were divided and %d left: there is nothing to see", divided, left)
	}
}

// leastOfPair tries all ways to divide two devices' items, none of whose loads is above
// the larger of theirs.
func leastOfPair(anneal *annealer, place []int32, one, two int32) float64 {
	var items []int
	for item, device := range place {
		if device == one || device == two {
			items = append(items, item)
		}
	}
	limit := max(anneal.load[one], anneal.load[two]) * (1 - 1e-9)
	least, tried := math.Inf(1), append([]int32(nil), place...)
	for set := range 1 << len(items) {
		for i, item := range items {
			if tried[item] = two; set>>i&1 == 1 {
				tried[item] = one
			}
		}
		anneal.refresh(tried)
		if max(anneal.load[one], anneal.load[two]) <= limit {
			least = min(least, anneal.energies[one]+anneal.energies[two])
		}
	}
	return least
}
