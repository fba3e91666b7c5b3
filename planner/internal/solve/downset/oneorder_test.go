package downset

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// started returns a search with its first bounds.
func started(t *testing.T, problem *graph.Problem) *contiguous {
	t.Helper()
	ordered, err := newOrder(problem, true)
	if err != nil {
		t.Fatal(err)
	}
	call := &contiguous{order: ordered, limits: standard, Incumbent: graph.NewIncumbent(problem, nil)}
	call.firstBounds()
	return call
}

// TestGreedyCuts: without transfers, a device takes as many nodes as it can hold. So greedy cuts
// are the best ones, up to the gap at which they stop.
func TestGreedyCuts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		problem := path(3)
		problem.Kinds[0].Capacity = math.Inf(1)
		for _, node := range nearChain(random, 30, 0, problem.Kinds[0]).Nodes {
			node.Transfer = 0
			problem.Nodes = append(problem.Nodes, node)
		}
		for i := range problem.Nodes[1:] {
			problem.Edges = append(problem.Edges, [2]int{i, i + 1})
		}
		best, err := Solve(context.Background(), problem, nil)
		if err != nil || !best.Optimal() {
			t.Fatalf("%+v, %v", best, err)
		}
		call := started(t, problem)
		for items := range call.extensions(context.Background()) {
			call.greedily(context.Background(), items)
			break
		}
		if call.Answer.Value > best.Value*(1+2*greedyGap) {
			t.Errorf("seed %d: %v, and %v is possible", seed, call.Answer.Value, best.Value)
		}
	}
}

// TestShuffled: an order near the best answer runs through the answer's parts one after the other.
// Two such orders differ.
func TestShuffled(t *testing.T) {
	t.Parallel()
	problem := parallel(4, 6, 6)
	call := started(t, problem)
	random, known := rand.New(rand.NewPCG(1, 1)), make(map[int]bool)
	for items := range call.extensions(context.Background()) {
		if err := call.oneOrder(context.Background(), items); err != nil {
			t.Fatal(err)
		}
		break
	}
	for range 20 {
		items := call.shuffled(context.Background(), random)
		parts, last := 0, -1
		for _, item := range items {
			if device := call.Answer.Place[call.Nodes[item][0]]; device != last {
				parts, last = parts+1, device
			}
		}
		if len(items) != len(call.Nodes) || parts > 4 {
			t.Fatalf("%v: %d items in %d stretches of one device", items, len(items), parts)
		}
		hash := 0
		for _, item := range items {
			hash = 31*hash + item
		}
		known[hash] = true
	}
	if len(known) < 10 {
		t.Errorf("%d orders of 20 differ", len(known))
	}
}
