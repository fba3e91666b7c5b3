package chaintime

import (
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// placed is a device map with its cost.
type placed struct {
	items  []int // device of each item
	groups []int
	cost   cost  // with the update in its time
	update int64 // of the slowest device
	order  int   // how many cuts go down in device number
}

func (one *placed) less(other *placed) bool {
	if one.cost != other.cost {
		return one.cost.less(other.cost)
	}
	return one.order < other.order
}

// simpler reports fewer bytes and cuts.
func (one *placed) simpler(other *placed) bool {
	x, y := one.cost, other.cost
	x.time, y.time = 0, 0
	return x.less(y)
}

// unitMap is the map of units.
func (point *fixedPoint) unitMap(placed *placed) devicemap.Map {
	out := make(devicemap.Map, len(point.peaks.GroupOf))
	for i, device := range placed.items {
		for _, unit := range point.peaks.Order[point.peaks.Start[i]:point.peaks.Start[i+1]] {
			out[unit] = devicemap.Device(device)
		}
	}
	for group, device := range placed.groups {
		for _, unit := range point.peaks.Groups[group] {
			out[unit] = devicemap.Device(device)
		}
	}
	return out
}

// candidate is a map with its figures.
type candidate struct {
	*placed
	placement   devicemap.Map
	step, share float64
}

// better compares as the objective does: the step, the largest share, what
// crosses, and then devices in order.
func (one *candidate) better(other *candidate) bool {
	switch {
	case other == nil:
		return true
	case !Same(one.step, other.step):
		return one.step < other.step
	case math.Abs(one.share-other.share) > instance.Tolerance:
		return one.share < other.share
	}
	return one.simpler(other.placed)
}

// Same reports equal times, but for the rounding of sums.
func Same(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(a, b) }

func (solver *sequential) scored(state *search, placed *placed) *candidate {
	out := &candidate{placed: placed, placement: state.unitMap(placed), share: solver.share(state.fixedPoint, placed)}
	out.step = *devicemap.StepSeconds(solver.in.Costs, solver.in.Topology, out.placement)
	return out
}

// share is the largest of a map.
func (solver *sequential) share(point *fixedPoint, placed *placed) float64 {
	out := 0.
	first, end, held := make([]int, point.devices), make([]int, point.devices), make([]uint64, point.devices)
	for i, device := range placed.items {
		if end[device] == 0 {
			first[device] = i
		}
		end[device] = i + 1
	}
	for group, device := range placed.groups {
		held[device] |= 1 << group
	}
	for device := range first {
		need := solver.idle[device]
		if end[device] > 0 || held[device] != 0 {
			need = point.peaks.Peak(device, first[device], end[device], held[device])
		}
		out = max(out, float64(need)/float64(solver.in.Topology.Devices[device].Budget()))
	}
	return out
}
