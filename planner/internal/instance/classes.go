package instance

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Classes groups the interchangeable devices: they have the same figures and the same links to all
// others. Devices in apart are alone. So is the input's device if it receives the outputs.
func (in *Instance) Classes(apart map[int]bool) [][]int {
	special := func(device int) bool {
		return apart[device] || in.Costs.OutputBytes > 0 && device == in.Costs.InputDevice
	}
	var out [][]int
	for device := range in.Topology.Devices {
		class := slices.IndexFunc(out, func(class []int) bool {
			return !special(class[0]) && !special(device) && interchangeable(in.Topology, class[0], device)
		})
		if class < 0 {
			out = append(out, []int{device})
			continue
		}
		out[class] = append(out[class], device)
	}
	return out
}

// SameFigures reports devices that differ only in names and hosts. Any unit then takes the same
// memory and time on both.
func SameFigures(one, other *costmodel.Device) bool {
	left, right := *one, *other
	left.Name, left.Host, left.GPU = right.Name, right.Host, right.GPU
	return left == right
}

// interchangeable reports that the devices' figures and links are equal.
func interchangeable(topo *costmodel.Topology, one, other int) bool {
	if !SameFigures(&topo.Devices[one], &topo.Devices[other]) {
		return false
	}
	same := func(from, to, like, also int) bool {
		if topo.Linked(from, to) != topo.Linked(like, also) {
			return false
		}
		const large = 1 << 30
		return topo.SendSeconds(from, to, 0) == topo.SendSeconds(like, also, 0) && topo.SendSeconds(from, to, large) == topo.SendSeconds(like, also, large)
	}
	for third := range topo.Devices {
		if third != one && third != other && (!same(one, third, other, third) || !same(third, one, third, other)) {
			return false
		}
	}
	return same(one, other, other, one)
}

// Ordered reports that the order of a pipeline's devices matters: devices or links differ, or a
// unit is pinned.
func (in *Instance) Ordered() bool { return !in.Uniform() || len(in.Pins) > 0 }

// Orders returns the different orders of the devices if devices of a class are interchangeable.
// Ascending order comes first. It returns nil if there are more than limit.
func Orders(classes [][]int, limit int) [][]int {
	var out [][]int
	total := 0
	for _, class := range classes {
		total += len(class)
	}
	used, order := make([]int, len(classes)), make([]int, 0, total)
	var extend func()
	extend = func() {
		if len(out) > limit {
			return
		}
		if len(order) == total {
			out = append(out, slices.Clone(order))
			return
		}
		for class := range classes {
			if used[class] == len(classes[class]) {
				continue
			}
			order = append(order, classes[class][used[class]])
			used[class]++
			extend()
			used[class]--
			order = order[:len(order)-1]
		}
	}
	extend()
	if len(out) > limit {
		return nil
	}
	slices.SortStableFunc(out, slices.Compare)
	return out
}
