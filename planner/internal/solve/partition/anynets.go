package partition

import (
	"encoding/binary"
	"slices"
)

// netlist is an instance as a hypergraph. A device that holds some but not
// all members of a net pays its cost, once, whichever of them sends: the
// sender pays where a reader is elsewhere, a reader where the sender is.
type netlist struct {
	*instance
	wires []wire
	// at are the wires of each item.
	at [][]int32
	// count, capacity and free are those of the kinds; first is the number of
	// a kind's first device.
	count, first []int
	capacity     []float64
	free         []bool
}

type wire struct {
	cost    float64
	members []int32 // ascending
}

// newNetlist joins nets of the same members.
func newNetlist(in *instance) *netlist {
	l := &netlist{instance: in, at: make([][]int32, len(in.nodes))}
	known := make(map[string]int)
	for _, n := range in.nets {
		members := []int32{int32(n.source)}
		for _, s := range n.sinks {
			members = append(members, int32(s))
		}
		slices.Sort(members)
		var key []byte
		for _, m := range members {
			key = binary.AppendUvarint(key, uint64(m))
		}
		w, ok := known[string(key)]
		if !ok {
			w = len(l.wires)
			known[string(key)] = w
			l.wires = append(l.wires, wire{members: members})
			for _, m := range members {
				l.at[m] = append(l.at[m], int32(w))
			}
		}
		l.wires[w].cost += n.cost
	}
	devices := 0
	for _, k := range in.p.Kinds {
		l.first = append(l.first, devices)
		l.count = append(l.count, k.Count)
		l.capacity = append(l.capacity, k.room())
		l.free = append(l.free, k.FreeTransfers)
		devices += k.Count
	}
	return l
}

// kindOf is the kind of every device.
func (l *netlist) kindOf() []int {
	var kinds []int
	for k, n := range l.count {
		for range n {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
