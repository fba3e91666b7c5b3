package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// What is free of a pair is divided the best way while the rest stays, within the
// capacities: exactly where these are wide, and mostly where bytes are told apart.
func TestRegionsAreDividedTheBestWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	divided, left, missed, bound := 0, 0, 0, 0
	for seed := range uint64(300) {
		anneal, split, free := halfFree(seed)
		one, two := int32(0), int32(1+anneal.rng.IntN(2))
		place, before := slices.Clone(anneal.place), anneal.energies[one]+anneal.energies[two]
		least, wide := leastOfFree(anneal, place, one, two, free)
		anneal.refresh(place)
		better, _ := split.divide(ctx, anneal, one, two, free)
		after := anneal.energies[one] + anneal.energies[two]
		for item, was := range place {
			if now := anneal.place[item]; now != was && (!free[item] || was != one && was != two || now != one && now != two) {
				t.Fatalf("seed %d: item %d, free %v, went from %d to %d", seed, item, free[item], was, now)
			}
		}
		if _, fits := anneal.largest(); better && !fits {
			t.Fatalf("seed %d: over a capacity", seed)
		}
		if wide {
			bound++
		}
		switch possible := least < before*(1-1e-6); {
		case better && after < least*(1-1e-6) || better && !possible:
			t.Errorf("seed %d: %v from %v; the least is %v", seed, after, before, least)
		case possible && after > least*(1+1e-6) && wide:
			missed++
		case possible && after > least*(1+1e-6):
			t.Errorf("seed %d: %v from %v, no capacity in the way; the least is %v", seed, after, before, least)
		case better:
			divided++
		default:
			left++
		}
	}
	if divided < 80 || left < 20 || bound < 40 || missed > bound/10 {
		t.Errorf("%d divided the best way, %d left, %d missed of %d with capacities in the way", divided, left, missed, bound)
	}
}

// halfFree is an assignment to three devices within their capacities, about two thirds
// of whose items are free.
func halfFree(seed uint64) (anneal *annealer, split *splitter, free []bool) {
	random := rand.New(rand.NewPCG(seed, 19))
	problem := graphtest.NearChain(random, 11, 8, graph.Kind{Count: 2, Capacity: math.Inf(1)},
		graph.Kind{Count: 1, Capacity: math.Inf(1), FreeTransfers: seed%4 == 0})
	place := make([]int32, len(problem.Nodes))
	held := make([]float64, 3)
	for item := range place {
		place[item] = int32(random.IntN(3))
		held[place[item]] += problem.Nodes[item].Size
		free = append(free, random.IntN(3) > 0)
	}
	if seed%2 == 0 {
		problem.Kinds[0].Capacity = 1 + max(held[0], held[1])*(1+0.2*random.Float64())
		problem.Kinds[1].Capacity = 1 + held[2]*(1+0.2*random.Float64())
	}
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
	anneal = newAnnealer(newPlacement(call.Netlist, place), random)
	anneal.unit, anneal.squarings = 100, 1+random.IntN(4)
	anneal.refresh(place)
	const fine = 1 << 14
	return anneal, newSplitter(context.Background(), call.Netlist, fine), free
}

// leastOfFree tries all ways to divide what is free of two devices' items, none of whose
// loads is above the larger of theirs; tight tells that some are over a capacity.
func leastOfFree(anneal *annealer, place []int32, one, two int32, free []bool) (least float64, tight bool) {
	var items []int
	for item, device := range place {
		if free[item] && (device == one || device == two) {
			items = append(items, item)
		}
	}
	limit := max(anneal.load[one], anneal.load[two]) * (1 - 1e-9)
	least, tried := math.Inf(1), slices.Clone(place)
	for set := range 1 << len(items) {
		for i, item := range items {
			if tried[item] = two; set>>i&1 == 1 {
				tried[item] = one
			}
		}
		anneal.refresh(tried)
		_, fits := anneal.largest()
		tight = tight || !fits
		if fits && max(anneal.load[one], anneal.load[two]) <= limit {
			least = min(least, anneal.energies[one]+anneal.energies[two])
		}
	}
	return least, tight
}

// Regions are divided until none is left to divide, and what is found is better and
// within the capacities.
func TestRegionsEnd(t *testing.T) {
	t.Parallel()
	better := 0
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 23))
		problem := graphtest.NearChain(random, 40, 20,
			graph.Kind{Count: 2 + int(seed%2), Capacity: []float64{math.Inf(1), 1500}[seed/2%2]})
		call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{Seed: seed})
		split := newSplitter(context.Background(), call.Netlist, splitCells)
		usual := split.cells
		find := call.newFinder(split, 0)
		find.cool(context.Background(), 1, 20_000, way{byCooling, low, 1, false})
		find.keep("cooled")
		first := find.value
		find.regions(context.Background(), member{find.at, find.value})
		if find.at == nil || find.value > first {
			t.Fatalf("seed %d: %v from %v", seed, find.value, first)
		}
		if find.value < first {
			better++
		}
		if _, largest, err := problem.Score(call.Places(find.at)); err != nil || math.Abs(largest/find.value-1) > 1e-9 {
			t.Errorf("seed %d: %v, scored %v, %v", seed, find.value, largest, err)
		}
		if split.cells != usual || split.Work > regionWork {
			t.Errorf("seed %d: cells %v, work %d", seed, split.cells, split.Work)
		}
	}
	if better < 6 {
		t.Errorf("%d answers of 12 are better for it", better)
	}
}

// A device that holds nothing takes what has no bytes.
func TestRegionsWithoutRoom(t *testing.T) {
	t.Parallel()
	problem := &graph.Problem{Kinds: []graph.Kind{{Count: 1}, {Count: 1, Capacity: 10}}}
	for node, size := range []float64{0, 0, 5, 5, 0} {
		problem.Nodes = append(problem.Nodes, graph.Node{Time: []float64{2, 2}, Size: size, Group: node})
	}
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
	find := call.newFinder(newSplitter(context.Background(), call.Netlist, splitCells), 0)
	find.know([]int32{1, 1, 1, 1, 1}, 10, 0)
	find.regions(context.Background(), member{find.at, find.value})
	if find.value != 6 {
		t.Errorf("%v, want 6", find.value)
	}
}
