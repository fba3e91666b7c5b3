package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// TestCones: an order has each item behind those before it, and a cone has an item and what
// there is a way from to it; of cycles, and of what is behind them, neither has anything.
func TestCones(t *testing.T) {
	t.Parallel()
	cyclic := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		items := 1 + random.IntN(100)
		before, after := make([][]int, items), make([][]int, items)
		leads := make([][]bool, items) // on a way of one step or more
		for item := range leads {
			leads[item] = make([]bool, items)
		}
		number := random.Perm(items)
		for range random.IntN(2 * items) {
			from, to := random.IntN(items), random.IntN(items)
			if from > to && random.IntN(30) > 0 {
				from, to = to, from
			}
			from, to = number[from], number[to]
			if from == to || leads[from][to] {
				continue
			}
			before[to], after[from] = append(before[to], from), append(after[from], to)
			leads[from][to] = true
		}
		for by := range items {
			for from := range items {
				for to := range items {
					leads[from][to] = leads[from][to] || leads[from][by] && leads[by][to]
				}
			}
		}
		order := graph.InOrder(before, after)
		cones := graph.Cones(order, before)
		for item := range items {
			circles := slices.ContainsFunc(number, func(other int) bool { return leads[other][other] && (other == item || leads[other][item]) })
			if circles {
				cyclic++
			}
			at := slices.Index(order, item)
			if (at < 0) != circles || (cones[item] == nil) != circles {
				t.Fatalf("seed %d: item %d is in the order %v, and behind a cycle: %v", seed, item, order, circles)
			}
			if circles {
				continue
			}
			for other := range items {
				if leads[other][item] && slices.Index(order, other) > at {
					t.Errorf("seed %d: %d stands behind %d", seed, other, item)
				}
				if has := cones[item][other/64]>>(other%64)&1 != 0; has != (other == item || leads[other][item]) {
					t.Errorf("seed %d: the cone of %d has %d: %v", seed, item, other, has)
				}
			}
		}
	}
	if cyclic < 100 {
		t.Errorf("%d items behind cycles", cyclic)
	}
}
