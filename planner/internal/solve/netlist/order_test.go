package netlist_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestNew: what devices pay for wires is what the score of a problem says that they send
// and receive, wherever its nodes are.
func TestNew(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 8))
		problem := graphtest.Random(random)
		in := graph.NewInstance(problem, problem.Groups())
		nets := netlist.New(in)
		kinds := nets.KindOf()
		device, place := make([]int, len(in.Nodes)), make([]int, len(problem.Nodes))
		for item := range device {
			device[item] = random.IntN(len(kinds))
		}
		for node := range place {
			place[node] = device[in.ItemOf[node]]
		}
		loads, _, err := problem.Score(place)
		if err != nil {
			continue
		}
		tried++
		for at, kind := range kinds {
			if got := graphtest.LoadOf(nets, kind, func(item int) bool { return device[item] == at }); differ(got, loads[at].Total()) {
				t.Errorf("seed %d: device %d has a load of %v, by the score %v", seed, at, got, loads[at].Total())
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d placements", tried)
	}
}

// TestThinOrder: an order has every item once, and is as thin as can be where that is plain:
// along a chain, whatever its items' numbers, one wire is open at a time, around a ring two,
// and along a grid of three rows four.
func TestThinOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 9))
		length := 3 + random.IntN(20)
		var chain, grid [][2]int
		for i := range length - 1 {
			chain = append(chain, [2]int{i, i + 1})
		}
		for row := range 3 {
			for i := range length {
				if i > 0 {
					grid = append(grid, [2]int{3*i - 3 + row, 3*i + row})
				}
				if row > 0 {
					grid = append(grid, [2]int{3*i + row - 1, 3*i + row})
				}
			}
		}
		for _, is := range []struct {
			items, open int
			edges       [][2]int
		}{{length, 1, chain}, {length, 2, append(chain, [2]int{0, length - 1})}, {3 * length, 4, grid}} {
			nets := wired(random.Perm(is.items), is.edges)
			order := nets.ThinOrder(context.Background(), all(len(nets.Wires)))
			if got := mostOpen(nets, order); got > is.open {
				t.Errorf("seed %d: %d items in the order %v, %d wires open at once, want %d", seed, is.items, order, got, is.open)
			}
			for i, item := range slices.Sorted(slices.Values(order)) {
				if len(order) != is.items || int(item) != i {
					t.Fatalf("seed %d: the order %v of %d items", seed, order, is.items)
				}
			}
		}
	}
}

// wired has a wire for each edge between items, under other numbers.
func wired(number []int, edges [][2]int) *netlist.Netlist {
	nets := &netlist.Netlist{Instance: &graph.Instance{Nodes: make([][]int, len(number))}, WiresOf: make([][]int32, len(number))}
	for wire, edge := range edges {
		ends := []int32{int32(number[edge[0]]), int32(number[edge[1]])}
		for _, end := range ends {
			nets.WiresOf[end] = append(nets.WiresOf[end], int32(wire))
		}
		slices.Sort(ends)
		nets.Wires = append(nets.Wires, netlist.Wire{Cost: 1, Members: ends})
	}
	return nets
}

// mostOpen is how many wires are open at once between two items of an order.
func mostOpen(nets *netlist.Netlist, order []int32) (most int) {
	for step := range order {
		open := 0
		for _, wire := range nets.Wires {
			passed := 0
			for _, member := range wire.Members {
				if slices.Contains(order[:step+1], member) {
					passed++
				}
			}
			if 0 < passed && passed < len(wire.Members) {
				open++
			}
		}
		most = max(most, open)
	}
	return most
}
