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

// OnlyKind is the kind of devices in use; −1 where there are none, or of several kinds.
func (nets *Netlist) OnlyKind() int {
	only := -1
	for kind, count := range nets.Count {
		if count > 0 && only >= 0 {
			return -1
		}
		if count > 0 {
			only = kind
		}
	}
	return only
}

// Wire joins the items that write or read one output, or several of the same
// readers: its cost is theirs together.
type Wire struct {
	Cost    float64
	Members []int32 // ascending
}

// New joins nets of the same members.
func New(in *graph.Instance) *Netlist {
	nets := &Netlist{Instance: in, WiresOf: make([][]int32, len(in.Nodes))}
	known := make(map[string]int)
	for _, net := range in.Nets {
		members := []int32{int32(net.Source)}
		for _, sink := range net.Sinks {
			members = append(members, int32(sink))
		}
		slices.Sort(members)
		var key []byte
		for _, member := range members {
			key = binary.AppendUvarint(key, uint64(member))
		}
		wire, ok := known[string(key)]
		if !ok {
			wire = len(nets.Wires)
			known[string(key)] = wire
			nets.Wires = append(nets.Wires, Wire{Members: members})
			for _, member := range members {
				nets.WiresOf[member] = append(nets.WiresOf[member], int32(wire))
			}
		}
		nets.Wires[wire].Cost += net.Cost
	}
	devices := 0
	for _, kind := range in.Problem.Kinds {
		nets.First = append(nets.First, devices)
		nets.Count = append(nets.Count, kind.Count)
		nets.Capacity = append(nets.Capacity, kind.Room())
		nets.Free = append(nets.Free, kind.FreeTransfers)
		devices += kind.Count
	}
	return nets
}

// KindOf is the kind of every device.
func (nets *Netlist) KindOf() []int {
	var kinds []int
	for kind, count := range nets.Count {
		for range count {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
