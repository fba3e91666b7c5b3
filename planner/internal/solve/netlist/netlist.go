// Package netlist is a graph's instance as a hypergraph, and the thin walk
// through it on which the bounds by prices and the splits of two devices rest:
// items one by one, in an order that keeps few wires open.
package netlist

import (
	"encoding/binary"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Netlist is an instance as a hypergraph. A device that holds some but not
// all members of a net pays its cost, once, whichever of them sends: the
// sender pays where a reader is elsewhere, a reader where the sender is.
type Netlist struct {
	*graph.Instance
	Wires []Wire
	// WiresOf are the wires of each item.
	WiresOf [][]int32
	// Count, Capacity and Free are those of the kinds; First is the number of
	// a kind's first device.
	Count, First []int
	Capacity     []float64
	Free         []bool
}

type Wire struct {
	Cost    float64
	Members []int32 // ascending
}

// New joins nets of the same members.
func New(in *graph.Instance) *Netlist {
	l := &Netlist{Instance: in, WiresOf: make([][]int32, len(in.Nodes))}
	known := make(map[string]int)
	for _, n := range in.Nets {
		members := []int32{int32(n.Source)}
		for _, s := range n.Sinks {
			members = append(members, int32(s))
		}
		slices.Sort(members)
		var key []byte
		for _, m := range members {
			key = binary.AppendUvarint(key, uint64(m))
		}
		w, ok := known[string(key)]
		if !ok {
			w = len(l.Wires)
			known[string(key)] = w
			l.Wires = append(l.Wires, Wire{Members: members})
			for _, m := range members {
				l.WiresOf[m] = append(l.WiresOf[m], int32(w))
			}
		}
		l.Wires[w].Cost += n.Cost
	}
	devices := 0
	for _, k := range in.Problem.Kinds {
		l.First = append(l.First, devices)
		l.Count = append(l.Count, k.Count)
		l.Capacity = append(l.Capacity, k.Room())
		l.Free = append(l.Free, k.FreeTransfers)
		devices += k.Count
	}
	return l
}

// KindOf is the kind of every device.
func (l *Netlist) KindOf() []int {
	var kinds []int
	for k, n := range l.Count {
		for range n {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
