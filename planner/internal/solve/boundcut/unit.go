// Package boundcut bounds the largest load by the largest unit: what a device
// has to do at least that holds an item, in the best company it can have. The
// load of a set of items is submodular, so that the best company is a minimum
// cut (Picard, "Maximal closure of a graph and applications to combinatorial
// problems", Management Science 22, 1976): one maximum flow for each item that
// may still raise the bound.
package boundcut

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Unit is the largest of the items' least loads: the load that a device
// has at least when it holds the item, with whatever company is best of the
// items that fit beside it, each for itself. Below it nothing fits, however
// many devices there are.
//
// The load of a set is a submodular function, so the least over the sets that
// hold an item is a minimum cut (Picard, Management Science 1976): an item
// outside the set saves its time, a wire that is cut costs.
func Unit(ctx context.Context, nets *netlist.Netlist) (bound float64, item int) {
	least := leastFree(nets)
	networks := make([]*cutNetwork, len(nets.Count))
	for kind, count := range nets.Count {
		if count > 0 && !nets.Free[kind] {
			networks[kind] = newCutNetwork(nets, kind)
		}
	}
	for unit := range least {
		if ctx.Err() != nil {
			break
		}
		for kind, network := range networks {
			if network == nil || least[unit] <= bound || nets.Size[unit] > nets.Capacity[kind] {
				continue
			}
			value, company := network.least(unit)
			// What shares the best set can do as well, if it leaves the others
			// as much room.
			for _, other := range company {
				if nets.Size[other] <= nets.Size[unit] || network.roomy {
					least[other] = min(least[other], value)
				}
			}
		}
		if least[unit] > bound && !math.IsInf(least[unit], 1) {
			bound, item = least[unit], unit
		}
	}
	return bound, item
}

// leastFree is each item's least time where transfers are free.
func leastFree(nets *netlist.Netlist) []float64 {
	least := make([]float64, len(nets.Nodes))
	for item := range least {
		least[item] = math.Inf(1)
		for kind, count := range nets.Count {
			if count > 0 && nets.Free[kind] && nets.Size[item] <= nets.Capacity[kind] {
				least[item] = min(least[item], nets.Time[kind][item])
			}
		}
	}
	return least
}

// cutNetwork holds the arcs that are the same for every item.
type cutNetwork struct {
	*flow
	items, sink int
	fixed       []float64 // capacities without flow
	toSink      []int     // each item's arc to the sink
	size        []float64
	room        float64
	roomy       bool // any two items fit
}

// newCutNetwork has a node for each item, two for each wire of three members
// or more, and a sink. A device's side of the cut is its set.
func newCutNetwork(nets *netlist.Netlist, kind int) *cutNetwork {
	network := &cutNetwork{items: len(nets.Nodes), size: nets.Size, room: nets.Capacity[kind]}
	network.roomy = 2*slices.Max(nets.Size) <= network.room
	nodes := network.items + 1
	for _, wire := range nets.Wires {
		if len(wire.Members) > 2 {
			nodes += 2
		}
	}
	network.sink = network.items
	network.flow = newFlow(nodes)
	for item, time := range nets.Time[kind] {
		network.toSink = append(network.toSink, len(network.head))
		network.arc(item, network.sink, time, 0)
	}
	next := network.items + 1
	for _, wire := range nets.Wires {
		if len(wire.Members) == 2 {
			network.arc(int(wire.Members[0]), int(wire.Members[1]), wire.Cost, wire.Cost)
			continue
		}
		in, out := next, next+1
		next += 2
		network.arc(in, out, wire.Cost, 0)
		for _, member := range wire.Members {
			network.arc(int(member), in, math.Inf(1), 0)
			network.arc(out, int(member), math.Inf(1), 0)
		}
	}
	network.fixed = append([]float64(nil), network.left...)
	return network
}

// least is the least load of a set that holds an item, and such a set. A flow is
// never more than a cut, so the value is a lower bound even where rounding
// ends the search for paths early.
func (network *cutNetwork) least(item int) (load float64, set []int) {
	copy(network.left, network.fixed)
	for other := range network.items {
		if !network.roomy && other != item && network.size[other]+network.size[item] > network.room {
			network.left[network.toSink[other]] = math.Inf(1) // the sink's side
		}
	}
	load = network.run(item, network.sink)
	for other := range network.items {
		if network.level[other] >= 0 {
			set = append(set, other)
		}
	}
	return load, set
}
