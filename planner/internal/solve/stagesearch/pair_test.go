package stagesearch

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// wide is a drawn problem of few edges on three devices and one of another kind.
func wide(random *rand.Rand) *graph.Problem {
	problem := &graph.Problem{Kinds: []graph.Kind{
		{Name: "gpu", Count: 3, Capacity: math.Inf(1)}, {Name: "cpu", Count: 1, Capacity: math.Inf(1), FreeTransfers: random.IntN(3) == 0},
	}}
	if random.IntN(2) == 0 {
		problem.Kinds[0].Capacity = 6 + 8*random.Float64()
	}
	for node := range 16 {
		time := 1 + 9*random.Float64()
		times := []float64{time, 2 * time}
		if random.IntN(12) == 0 {
			times[random.IntN(2)] = math.Inf(1)
		}
		problem.Nodes = append(problem.Nodes, graph.Node{
			Name: fmt.Sprint("n", node), Time: times, Size: 4 * random.Float64(), Transfer: 3 * random.Float64(), Group: node,
		})
		for before := range node {
			if random.IntN(6) == 0 {
				problem.Edges = append(problem.Edges, [2]int{before, node})
			}
		}
	}
	return problem
}

// small is a search from a drawn placement that keeps the order and runs where it is,
// some as good as moves make them; nil where the draw does not come to one.
func small(seed uint64) (*Search, *parter) {
	random := rand.New(rand.NewPCG(seed, 51))
	chain, _ := chainOf(wide(random))
	search := New(chain, seed, 1)
	for item := range int32(chain.items) {
		device := int32(0)
		for _, other := range chain.before.of(item) {
			device = max(device, search.place[other])
		}
		for device < 4 && (!chain.runs(item, device) || random.IntN(3) == 0 && device < 3) {
			device++
		}
		if device == 4 {
			return nil, nil
		}
		search.place[item] = device
	}
	search.refresh()
	search.unit = slices.Max(search.load)
	for range 100 * int(seed%3) {
		search.step(1e-9)
	}
	search.refresh()
	part := newParter(context.Background(), search.annealer)
	part.whole, part.fine = slices.Max(search.load), true
	return search, part
}

// inOrder says whether every edge is within a stage or leads to a later one.
func (anneal *annealer) inOrder() bool {
	for item := range int32(anneal.items) {
		if low, high := anneal.window(item); anneal.rank[anneal.place[item]] < low || anneal.rank[anneal.place[item]] > high {
			return false
		}
	}
	return true
}

// leastOfPair tries all ways to divide two stages' items that keep the order and the
// room that there is, neither of whose loads is above the larger of theirs.
func leastOfPair(search *Search, part *parter, one, two int32) (least float64) {
	items, start := part.itemsOf(one, two), slices.Clone(search.place)
	limit := max(search.load[one], search.load[two]) * (1 - 1e-9)
	rooms := [2]float64{part.side(one).Room, part.side(two).Room}
	least = math.Inf(1)
	for set := range 1 << len(items) {
		for i, item := range items {
			if search.place[item] = two; set>>i&1 == 1 {
				search.place[item] = one
			}
		}
		search.recount()
		if search.inOrder() && max(search.load[one], search.load[two]) <= limit && search.bytes[one] <= rooms[0] && search.bytes[two] <= rooms[1] {
			least = min(least, raised(search.load[one]/part.whole)+raised(search.load[two]/part.whole))
		}
	}
	copy(search.place, start)
	search.recount()
	return least
}

// TestPairs: two stages, neighbours or not, are divided as well as the best of all
// ways that keep the order and the capacities, and left alone where none is better.
func TestPairs(t *testing.T) {
	t.Parallel()
	divided, left, far := 0, 0, 0
	for seed := range uint64(160) {
		search, part := small(seed)
		if search == nil {
			continue
		}
		i := int(seed) % 3
		apart := 1 + int(seed/3)%(3-i)
		one, two := search.at[i], search.at[i+apart]
		before := raised(search.load[one]/part.whole) + raised(search.load[two]/part.whole)
		least := leastOfPair(search, part, one, two)
		better := part.divide(context.Background(), one, two)
		search.recount()
		after := raised(search.load[one]/part.whole) + raised(search.load[two]/part.whole)
		if !search.inOrder() {
			t.Fatalf("seed %d: out of order", seed)
		}
		switch {
		case better && apart > 1:
			far++
		case better:
			divided++
		default:
			left++
		}
		if least < before*(1-1e-6) != better || better && after > max(least, 1e-12)*(1+1e-6) {
			t.Errorf("seed %d, %d apart: %v, divided %v from %v; the least is %v", seed, apart, after, better, before, least)
		}
	}
	if divided < 30 || left < 30 || far < 10 {
		t.Errorf("%d pairs of neighbours were divided, %d of others, %d left: there is nothing to see", divided, far, left)
	}
}

// TestWidePairs: where a pair is too wide to be divided wholly a part of it is, in
// order, within the capacities and never worse; what is planted there is found.
func TestWidePairs(t *testing.T) {
	t.Parallel()
	divided := 0
	for seed := range uint64(100) {
		search, part := small(seed)
		if search == nil {
			continue
		}
		part.width = netlist.Width{Step: 3, All: 16}
		one, two := search.at[0], search.at[1]
		rooms := [2]float64{part.side(one).Room, part.side(two).Room}
		before := raised(search.load[one]/part.whole) + raised(search.load[two]/part.whole)
		better := part.divide(context.Background(), one, two)
		search.recount()
		after := raised(search.load[one]/part.whole) + raised(search.load[two]/part.whole)
		if better {
			divided++
		}
		if better != (after < before*(1-1e-9)) || after > before*(1+1e-9) {
			t.Errorf("seed %d: from %v to %v, divided %v", seed, before, after, better)
		}
		if !search.inOrder() || search.bytes[one] > rooms[0] || search.bytes[two] > rooms[1] {
			t.Errorf("seed %d: out of order, or over what there was room for", seed)
		}
	}
	if divided < 15 {
		t.Errorf("%d pairs were divided: there is nothing to see", divided)
	}
}
