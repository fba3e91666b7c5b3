package downset

import (
	"encoding/binary"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// stretch is the set of items between two down-sets, with its cost on a device. Adding and removing
// items updates the cost.
type stretch struct {
	kinds    []graph.Kind
	capacity []float64 // by kind
	time     []float64 // item × kinds
	size     []float64
	// The nets that an item touches are nets[first[item]:first[item+1]]. Nets that join the same
	// items count as one, as they cross an edge together.
	first, nets []int32
	cost        []float64
	pins        []int32 // number of items that a net touches
	before      []int32 // of these, the items in the down-set below the stretch
	inside      []int32 // of these, the items in the stretch
	// drift bounds the rounding error of a load after changes of transfers: one ulp of their sum
	// for every net that an item touches.
	drift float64
}

// usage is the cost of a stretch. Undoing a step restores it exactly.
type usage struct {
	time [maxKinds]float64
	size float64
	// transfers cross the stretch's edge. settled transfers come from below, so they cross however
	// the stretch grows.
	transfers, settled float64
}

// maxKinds is the most kinds of devices that Solve takes.
const maxKinds = 8

func newStretch(in *graph.Instance, size []float64) *stretch {
	part := &stretch{kinds: in.Problem.Kinds, size: size}
	touching := make([][]int32, len(in.Nodes))
	known := make(map[string]int32)
	for i := range in.Nets {
		net := &in.Nets[i]
		items := append([]int{net.Source}, net.Sinks...)
		slices.Sort(items)
		var key []byte
		for _, item := range items {
			key = binary.LittleEndian.AppendUint32(key, uint32(item))
		}
		at, found := known[string(key)]
		if !found {
			at = int32(len(part.cost))
			known[string(key)] = at
			part.cost = append(part.cost, 0)
			part.pins = append(part.pins, int32(len(items)))
			for _, item := range items {
				touching[item] = append(touching[item], at)
			}
		}
		part.cost[at] += net.Cost
	}
	part.first = []int32{0}
	for item := range touching {
		part.nets = append(part.nets, touching[item]...)
		part.first = append(part.first, int32(len(part.nets)))
		for kind := range in.Time {
			part.time = append(part.time, in.Time[kind][item])
		}
	}
	for _, kind := range part.kinds {
		part.capacity = append(part.capacity, kind.SizeLimit())
	}
	part.drift = 0x1p-53 * graph.Sum(part.cost) * float64(len(part.nets))
	part.before, part.inside = make([]int32, len(part.cost)), make([]int32, len(part.cost))
	return part
}

// start empties the stretch above the down-set with the items below.
func (part *stretch) start(below []int32) {
	clear(part.before)
	for _, item := range below {
		for _, edge := range part.nets[part.first[item]:part.first[item+1]] {
			part.before[edge]++
		}
	}
}

// push adds an item to the nets' counts.
func (part *stretch) push(item int32, used *usage) {
	for _, edge := range part.nets[part.first[item]:part.first[item+1]] {
		count := part.inside[edge] + 1
		part.inside[edge] = count
		if count == 1 {
			used.transfers += part.cost[edge]
			if part.before[edge] > 0 {
				used.settled += part.cost[edge]
			}
		}
		if count == part.pins[edge] {
			used.transfers -= part.cost[edge]
		}
	}
}

// pop removes the item from the nets' counts.
func (part *stretch) pop(item int32) {
	for _, edge := range part.nets[part.first[item]:part.first[item+1]] {
		part.inside[edge]--
	}
}

// load returns the stretch's cost on a device of a kind. least is a lower bound of that cost
// however the stretch grows.
func (part *stretch) load(used *usage, kind int) (load, least float64) {
	if part.kinds[kind].FreeTransfers {
		return used.time[kind], used.time[kind]
	}
	return used.time[kind] + used.transfers, used.time[kind] + used.settled
}
