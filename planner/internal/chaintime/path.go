package chaintime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// pathSearch is one dynamic program: the chain's items on devices in an order, with fixed devices
// for the groups.
type pathSearch struct {
	*fixedPoint
	stops        []deviceStop
	groups       []int    // device of each group
	base         []uint64 // groups of each device
	fixed        cost     // of the groups' units and the transfers between them
	sums         [][]cost // prefix sums of items by device
	barred       [][]int  // prefix counts of the items that a device may not have
	groupUpdates []int64  // seconds of the groups' update, by device
	grown        [][]int64
	lo           [][]int // by device and end, the first item from which a run may fit in memory
	// arenas: a later start may need more memory than an earlier one, so every run is compared with
	// the caps.
	arenas bool
	caps   []int64
}

// newPath computes the sums; false if two groups need a link that does not exist.
func (point *fixedPoint) newPath(stops []deviceStop, groups []int) (*pathSearch, bool) {
	out := &pathSearch{fixedPoint: point, stops: stops, groups: groups, base: make([]uint64, point.devices), groupUpdates: make([]int64, point.devices)}
	for group, device := range groups {
		out.base[device] |= 1 << group
	}
	if !out.fix() {
		return nil, false
	}
	out.sums, out.barred, out.grown = make([][]cost, point.devices), make([][]int, point.devices), make([][]int64, point.devices)
	for device := range point.devices {
		out.sum(device)
	}
	return out, true
}

// groupDevice returns the device of a unit's group; -1 for a unit of the chain and outside the
// model.
func (path *pathSearch) groupDevice(unit int) int {
	if unit < 0 || unit >= len(path.peaks.GroupOf) || path.peaks.GroupOf[unit] < 0 {
		return -1
	}
	return path.groups[path.peaks.GroupOf[unit]]
}

func (path *pathSearch) fix() bool {
	for unit := range path.peaks.GroupOf {
		device := path.groupDevice(unit)
		if device < 0 {
			continue
		}
		path.fixed.time += path.unit[device][unit]
		path.groupUpdates[device] += path.update[device][unit]
		if next := path.groupDevice(unit + 1); next >= 0 {
			crossing, ok := path.crossing(device, next, unit)
			if !ok {
				return false
			}
			path.fixed = path.fixed.plus(crossing)
		}
	}
	return true
}

// sum computes a device's prefix sums: its units, and transfers to adjacent units of groups.
func (path *pathSearch) sum(device int) {
	sums, barred, grown := make([]cost, path.items+1), make([]int, path.items+1), make([]int64, path.items+1)
	for i := range path.items {
		sum, bar, update := cost{}, path.bars(i, device), int64(0)
		for _, unit := range path.peaks.Order[path.peaks.Start[i]:path.peaks.Start[i+1]] {
			sum.time += path.unit[device][unit]
			update += path.update[device][unit]
			if before := path.groupDevice(unit - 1); before >= 0 {
				crossing, ok := path.crossing(before, device, unit-1)
				sum, bar = sum.plus(crossing), bar || !ok
			}
			if after := path.groupDevice(unit + 1); after >= 0 {
				crossing, ok := path.crossing(device, after, unit)
				sum, bar = sum.plus(crossing), bar || !ok
			}
		}
		sums[i+1], barred[i+1], grown[i+1] = sums[i].plus(sum), barred[i], grown[i]+update
		if bar {
			barred[i+1]++
		}
	}
	path.sums[device], path.barred[device], path.grown[device] = sums, barred, grown
}

// bars reports that an item's pin or group excludes a device.
func (path *pathSearch) bars(item, device int) bool {
	if at := path.peaks.Pins[item]; at >= 0 && at != device {
		return true
	}
	for group, items := range path.peaks.Follow {
		for _, i := range items {
			if i == item && path.groups[group] != device {
				return true
			}
		}
	}
	return false
}

// within finds the runs within the caps; false if the groups alone exceed them.
func (path *pathSearch) within(caps []int64) bool {
	path.lo, path.caps = make([][]int, path.devices), caps
	path.arenas = costmodel.StageRulesOf(path.In.Costs.Workload.Runtime).Arena
	for device := range path.lo {
		if path.base[device] != 0 && path.peaks.Floor(device, 0, 0, path.base[device]) > caps[device] {
			return false
		}
		lo := make([]int, path.items+1)
		a := 0
		for b := 1; b <= path.items; b++ {
			for a < b && (path.barred[device][b] > path.barred[device][a] || path.peaks.Floor(device, a, b, path.base[device]) > caps[device]) {
				a++
			}
			lo[b] = a
		}
		path.lo[device] = lo
	}
	return true
}

// fits reports that a run fits on a device.
func (path *pathSearch) fits(device, a, b int) bool {
	return !path.arenas || path.peaks.Peak(device, a, b, path.base[device]) <= path.caps[device]
}

// groupsFit reports that devices with groups and no items have memory for the groups.
// [pathSearch.within] compares only a lower bound with their caps.
func (path *pathSearch) groupsFit(placed *placedMap) bool {
	for device, groups := range path.base {
		if path.arenas && groups != 0 && !slices.Contains(placed.items, device) && path.peaks.Peak(device, 0, 0, groups) > path.caps[device] {
			return false
		}
	}
	return true
}

// least returns a lower bound of every path's time, without the update.
func (path *pathSearch) least() int64 {
	total := path.fixed.time
	for i := range path.items {
		best := int64(math.MaxInt64)
		for device := range path.devices {
			if path.barred[device][i+1] == path.barred[device][i] {
				best = min(best, path.sums[device][i+1].time-path.sums[device][i].time)
			}
		}
		if best == math.MaxInt64 {
			return best
		}
		total += best
	}
	return total
}
