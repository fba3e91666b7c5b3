package chaintime

import (
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// candidate is a map with its step and largest share.
type candidate struct {
	*placedMap
	placement   devicemap.Map
	step, share float64
}

// better orders by the objective: the step, the largest share, the bytes that cross, then devices
// in order.
func (one *candidate) better(other *candidate) bool {
	switch {
	case other == nil:
		return true
	case !Same(one.step, other.step):
		return one.step < other.step
	case math.Abs(one.share-other.share) > instance.Tolerance:
		return one.share < other.share
	}
	return one.simpler(other.placedMap)
}

// Same reports that times are equal up to rounding of sums.
func Same(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(a, b) }

func (solver *sequential) scored(state *search, placed *placedMap) *candidate {
	out := &candidate{placedMap: placed, placement: state.peaks.MapOf(placed.items, placed.groups), share: solver.share(state.fixedPoint, placed)}
	out.step = *devicemap.StepSeconds(solver.in.Timed(), solver.in.Topology, out.placement)
	return out
}

// share returns the largest share of a map.
func (solver *sequential) share(point *fixedPoint, placed *placedMap) float64 {
	out := 0.
	first, end, groups := make([]int, point.devices), make([]int, point.devices), make([]uint64, point.devices)
	for i, device := range placed.items {
		if end[device] == 0 {
			first[device] = i
		}
		end[device] = i + 1
	}
	for group, device := range placed.groups {
		groups[device] |= 1 << group
	}
	for device := range first {
		need := solver.idle[device]
		if end[device] > 0 || groups[device] != 0 {
			need = point.peaks.Peak(device, first[device], end[device], groups[device])
		}
		out = max(out, float64(need)/float64(solver.in.Topology.Devices[device].Budget()))
	}
	return out
}
