package assignment

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// CountsOf returns how many items of each kind a map puts on each device.
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

// MapOf returns a map with the given counts. It cuts the items of a kind into one run per device. A
// run starts or ends next to its neighbours' devices, so that few bytes cross.
func (problem *Problem) MapOf(counts [][]int) devicemap.Map {
	deal := dealer{problem, counts, slices.Repeat(devicemap.Map{devicemap.Nowhere}, len(problem.ItemOf))}
	for kind := range problem.Kinds {
		if len(problem.Kinds[kind].Items) == 1 {
			deal.kind(kind)
		}
	}
	const passes = 3 // later passes know the devices on both sides
	for range passes {
		for kind := range problem.Kinds {
			if len(problem.Kinds[kind].Items) > 1 {
				deal.kind(kind)
			}
		}
	}
	deal.weightless()
	return deal.placement
}

// dealer makes a map from counts.
type dealer struct {
	problem   *Problem
	counts    [][]int // per device and kind
	placement devicemap.Map
}

// kind places the items of one kind.
func (deal *dealer) kind(kind int) {
	items := deal.problem.Kinds[kind].Items
	var on []int
	for device := range deal.counts {
		if deal.counts[device][kind] > 0 {
			on = append(on, device)
		}
	}
	first, last := deal.neighbour(items[0], -1), deal.neighbour(items[len(items)-1], +1)
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
	for _, device := range on {
		count := deal.counts[device][kind]
		for _, i := range items[:count] {
			deal.put(i, device)
		}
		items = items[count:]
	}
}

// neighbour returns the device of the nearest placed unit before (step −1) or after (+1) an item;
// -1 if there is none.
func (deal *dealer) neighbour(i, step int) int {
	for unit := deal.problem.Items[i].Units[0] + step; unit >= 0 && unit < len(deal.placement); unit += step {
		if deal.placement[unit] >= 0 {
			return int(deal.placement[unit])
		}
	}
	return -1
}

// weightless puts items without memory next to the unit that they read from, so that they use no
// idle device.
func (deal *dealer) weightless() {
	for _, i := range deal.problem.weightless {
		device := deal.neighbour(i, -1)
		if device < 0 {
			device = max(deal.neighbour(i, +1), 0)
		}
		deal.put(i, device)
	}
}

func (deal *dealer) put(i, device int) {
	for _, unit := range deal.problem.Items[i].Units {
		deal.placement[unit] = devicemap.Device(device)
	}
}

// Relabel numbers devices of one class in the order in which the model reaches them.
func (problem *Problem) Relabel(placement devicemap.Map) {
	to := make([]devicemap.Device, len(problem.Devices))
	for device := range to {
		to[device] = devicemap.Nowhere
	}
	next := make([]int, len(problem.Devices)) // next number for each kind of device
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

// KindOf returns the kind of each item, −1 for items without memory.
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
