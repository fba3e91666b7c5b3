package anywhere

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// CountsOf is how many items of each kind a map puts on each device.
func (problem *Problem) CountsOf(placement devicemap.Map) [][]int {
	counts := make([][]int, len(problem.Devices))
	for device := range counts {
		counts[device] = make([]int, len(problem.Kinds))
	}
	for kind := range problem.Kinds {
		for _, i := range problem.Kinds[kind].Items {
			counts[placement[problem.Items[i].Units[0]]][kind]++
		}
	}
	return counts
}

// MapOf gives each item a device by the counts: the items of a kind are cut
// into one run a device, which begin where the units before are and end where
// those after are, so that little crosses between devices.
func (problem *Problem) MapOf(counts [][]int) devicemap.Map {
	placement := make(devicemap.Map, len(problem.ItemOf))
	for unit := range placement {
		placement[unit] = devicemap.Nowhere
	}
	for kind := range problem.Kinds {
		if len(problem.Kinds[kind].Items) == 1 {
			problem.deal(placement, kind, counts)
		}
	}
	const passes = 3 // the later ones know what stands on both sides
	for range passes {
		for kind := range problem.Kinds {
			if len(problem.Kinds[kind].Items) > 1 {
				problem.deal(placement, kind, counts)
			}
		}
	}
	problem.placeWeightless(placement)
	return placement
}

// deal places the items of one kind.
func (problem *Problem) deal(placement devicemap.Map, kind int, counts [][]int) {
	items := problem.Kinds[kind].Items
	var on []int
	for device := range counts {
		if counts[device][kind] > 0 {
			on = append(on, device)
		}
	}
	first, last := problem.beside(placement, items[0], -1), problem.beside(placement, items[len(items)-1], +1)
	rank := func(device int) int {
		switch device {
		case first:
			return 0
		case last:
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(on, func(a, b int) int { return rank(a) - rank(b) })
	at := 0
	for _, device := range on {
		for range counts[device][kind] {
			for _, unit := range problem.Items[items[at]].Units {
				placement[unit] = devicemap.Device(device)
			}
			at++
		}
	}
}

// beside is the device of the nearest unit before (step −1) or after (+1) an
// item's that has one, -1 where none has.
func (problem *Problem) beside(placement devicemap.Map, i, step int) int {
	for unit := problem.Items[i].Units[0] + step; unit >= 0 && unit < len(placement); unit += step {
		if placement[unit] >= 0 {
			return int(placement[unit])
		}
	}
	return -1
}

// placeWeightless puts what holds nothing beside the unit that it reads from,
// so that it takes no device that is idle otherwise.
func (problem *Problem) placeWeightless(placement devicemap.Map) {
	for _, i := range problem.weightless {
		device := problem.beside(placement, i, -1)
		if device < 0 {
			device = max(problem.beside(placement, i, +1), 0)
		}
		for _, unit := range problem.Items[i].Units {
			placement[unit] = devicemap.Device(device)
		}
	}
}

// Relabel numbers devices that are alike in the order in which the model
// reaches them.
func (problem *Problem) Relabel(placement devicemap.Map) {
	to := make([]devicemap.Device, len(problem.Devices))
	for device := range to {
		to[device] = devicemap.Nowhere
	}
	next := make([]int, len(problem.Devices)) // per kind of device, the next number to give
	for unit := range placement {
		device := placement[unit]
		if to[device] >= 0 {
			continue
		}
		like := problem.Devices[device].Like
		for next[like] = max(next[like], like); problem.Devices[next[like]].Like != like; next[like]++ {
			continue
		}
		to[device] = devicemap.Device(next[like])
		next[like]++
	}
	for unit := range placement {
		placement[unit] = to[placement[unit]]
	}
}

// KindOf is the kind of each item, −1 where it holds nothing.
func (problem *Problem) KindOf() []int {
	out := make([]int, len(problem.Items))
	for i := range out {
		out[i] = -1
	}
	for kind := range problem.Kinds {
		for _, i := range problem.Kinds[kind].Items {
			out[i] = kind
		}
	}
	return out
}
