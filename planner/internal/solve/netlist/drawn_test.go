package netlist_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// anyWidth is no bound.
var anyWidth = netlist.Width{Step: math.MaxInt, All: math.MaxInt}

// drawn is a small hypergraph, and a part of its items in an order of their own.
func drawn(random *rand.Rand) (nets *netlist.Netlist, order []int32) {
	problem := graphtest.Random(random)
	nets = netlist.New(graph.NewInstance(problem, problem.Groups()))
	for _, item := range random.Perm(len(nets.Nodes))[:1+random.IntN(len(nets.Nodes))] {
		order = append(order, int32(item))
	}
	return nets, order
}

// walked sums up what a frontier's arcs cost where some items are taken in; false where
// an arc leads nowhere.
func walked(frontier *netlist.Frontier, takes func(item int) bool) (in, out float64, arrives bool) {
	state := int32(0)
	for step, item := range frontier.Order {
		choice := 0
		if takes(int(item)) {
			choice = 1
		}
		arc := frontier.Arcs[step][state][choice]
		if arc.To == netlist.Nowhere {
			return 0, 0, false
		}
		in, out, state = in+arc.In, out+arc.Out, arc.To
	}
	return in, out, int(state) < frontier.States[len(frontier.Order)-1]
}

// paid is what a device pays for some wires: for those of which it has some members and
// not all.
func paid(wires []netlist.Wire, has func(item int) bool) (cost float64) {
	for _, wire := range wires {
		count := 0
		for _, member := range wire.Members {
			if has(int(member)) {
				count++
			}
		}
		if 0 < count && count < len(wire.Members) {
			cost += wire.Cost
		}
	}
	return cost
}

// eachTaken calls f with each set of the items of an order.
func eachTaken(order []int32, f func(takes func(item int) bool)) {
	graphtest.EachSet(len(order), func(has func(int) bool) {
		f(func(item int) bool {
			at := slices.Index(order, int32(item))
			return at >= 0 && has(at)
		})
	})
}

// differ tells sums apart that rounding does not explain.
func differ(a, b float64) bool { return math.Abs(a-b) > 1e-9 }

// all are that many.
func all(wires int) []bool { return slices.Repeat([]bool{true}, wires) }
