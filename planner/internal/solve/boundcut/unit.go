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
func Unit(ctx context.Context, l *netlist.Netlist) (bound float64, item int) {
	least := leastFree(l)
	networks := make([]*cutNetwork, len(l.Count))
	for k, n := range l.Count {
		if n > 0 && !l.Free[k] {
			networks[k] = newCutNetwork(l, k)
		}
	}
	for v := range least {
		if ctx.Err() != nil {
			break
		}
		for k, c := range networks {
			if c == nil || least[v] <= bound || l.Size[v] > l.Capacity[k] {
				continue
			}
			value, company := c.least(v)
			// What shares the best set can do as well, if it leaves the others
			// as much room.
			for _, u := range company {
				if l.Size[u] <= l.Size[v] || c.roomy {
					least[u] = min(least[u], value)
				}
			}
		}
		if least[v] > bound && !math.IsInf(least[v], 1) {
			bound, item = least[v], v
		}
	}
	return bound, item
}

// leastFree is each item's least time where transfers are free.
func leastFree(l *netlist.Netlist) []float64 {
	least := make([]float64, len(l.Nodes))
	for v := range least {
		least[v] = math.Inf(1)
		for k, n := range l.Count {
			if n > 0 && l.Free[k] && l.Size[v] <= l.Capacity[k] {
				least[v] = min(least[v], l.Time[k][v])
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
func newCutNetwork(l *netlist.Netlist, kind int) *cutNetwork {
	c := &cutNetwork{items: len(l.Nodes), size: l.Size, room: l.Capacity[kind]}
	c.roomy = 2*slices.Max(l.Size) <= c.room
	nodes := c.items + 1
	for _, w := range l.Wires {
		if len(w.Members) > 2 {
			nodes += 2
		}
	}
	c.sink = c.items
	c.flow = newFlow(nodes)
	for v, t := range l.Time[kind] {
		c.toSink = append(c.toSink, len(c.head))
		c.arc(v, c.sink, t, 0)
	}
	next := c.items + 1
	for _, w := range l.Wires {
		if len(w.Members) == 2 {
			c.arc(int(w.Members[0]), int(w.Members[1]), w.Cost, w.Cost)
			continue
		}
		in, out := next, next+1
		next += 2
		c.arc(in, out, w.Cost, 0)
		for _, m := range w.Members {
			c.arc(int(m), in, math.Inf(1), 0)
			c.arc(out, int(m), math.Inf(1), 0)
		}
	}
	c.fixed = append([]float64(nil), c.left...)
	return c
}

// least is the least load of a set that holds v, and such a set. A flow is
// never more than a cut, so the value is a lower bound even where rounding
// ends the search for paths early.
func (c *cutNetwork) least(v int) (load float64, set []int) {
	copy(c.left, c.fixed)
	for u := range c.items {
		if !c.roomy && u != v && c.size[u]+c.size[v] > c.room {
			c.left[c.toSink[u]] = math.Inf(1) // the sink's side
		}
	}
	load = c.run(v, c.sink)
	for u := range c.items {
		if c.level[u] >= 0 {
			set = append(set, u)
		}
	}
	return load, set
}
