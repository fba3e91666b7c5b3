// Package boundwindow bounds the largest load of contiguous placements by the
// boundaries between their parts. Within a limit on the loads an item's cone
// leaves it a window of stages (windows.go), so each boundary is a down-set
// between two known ones, and the wires that cross it are paid on both sides.
// The boundaries are chosen each for itself, by a minimum cut (cut.go), at
// multipliers for what they share: the loads, the capacities, and the wires
// that cross several (dual.go). Whatever the multipliers, no placement within
// the limit has a smaller largest load (Lagrangian relaxation: Geoffrion,
// Mathematical Programming Study 2, 1974).
package boundwindow

import (
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// form is the problem in the form of the bound: devices of one kind, which are
// the stages.
type form struct {
	stages        int
	time, size    []float64
	room          float64
	before, after [][]int
	wires         []netlist.Wire
	wiresOf       [][]int32
	// source and sink are the members of a wire that all its others come after
	// or before; −1: there is none.
	source, sink []int
	cones        *cones
}

func newForm(nets *netlist.Netlist, before, after [][]int, kind int) *form {
	out := &form{
		stages: nets.Count[kind], time: nets.Time[kind], size: nets.Size, room: nets.Capacity[kind],
		before: before, after: after, wires: nets.Wires, wiresOf: nets.WiresOf, cones: newCones(before, after),
	}
	out.room = min(out.room, graph.Sum(out.size))
	if nets.Free[kind] {
		out.wires, out.wiresOf = nil, make([][]int32, len(out.time))
	}
	for _, wire := range out.wires {
		out.source = append(out.source, apex(wire.Members, out.cones.after))
		out.sink = append(out.sink, apex(wire.Members, out.cones.before))
	}
	return out
}

// apex is the member whose cone holds all members.
func apex(members []int32, cone [][]uint64) int {
	for _, item := range members {
		all := true
		for _, other := range members {
			all = all && has(cone[item], int(other))
		}
		if all {
			return int(item)
		}
	}
	return -1
}
