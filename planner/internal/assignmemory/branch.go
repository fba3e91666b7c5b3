package assignmemory

import (
	"encoding/binary"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
)

// search fills the devices from order[i] on. It reports success.
func (pack *packing) search(i int) bool {
	empty := true
	for _, count := range pack.left {
		empty = empty && count == 0
	}
	switch {
	case empty:
		return pack.idle(i)
	case i == len(pack.order) || pack.spent() || pack.unfit(i) >= 0:
		return false
	}
	key := pack.key(i)
	if pack.failed[key] {
		return false
	}
	if pack.fill(i, 0) {
		return true
	}
	if !pack.gaveUp && len(pack.failed) < maxFailed {
		pack.failed[key] = true
	}
	return false
}

// idle reports whether the devices from order[i] on may stay idle. The input's device also has the
// outputs.
func (pack *packing) idle(i int) bool {
	for _, device := range pack.order[i:] {
		if pack.loads[device].Need() > pack.caps[device] {
			return false
		}
	}
	return true
}

func (pack *packing) key(i int) string {
	key := binary.AppendUvarint(make([]byte, 0, 2+len(pack.left)), uint64(i))
	for _, count := range pack.left {
		key = binary.AppendUvarint(key, uint64(count))
	}
	return string(key)
}

// fill chooses how many of the kind kinds[j] the device order[i] takes, the most first. It then
// does so for the later kinds.
func (pack *packing) fill(i, j int) bool {
	load := pack.loads[pack.order[i]]
	if j == len(pack.kinds) {
		return load.Need() <= pack.caps[load.Device] && !pack.takesMore(load) && pack.search(i+1)
	}
	kind := pack.kinds[j]
	most := pack.mostOf(load, kind)
	least := 0
	if load.Allows(kind) && pack.under.problem.Kinds[kind].Pin >= 0 {
		least = pack.left[kind] // pinned here: no other device may take it
	}
	if pack.first(i, j) {
		least = max(least, 1)
	}
	for count := most; count >= least && !pack.gaveUp; count-- {
		load.Set(kind, count)
		if count < most && pack.takesAll(load, j, count+1) {
			continue
		}
		pack.left[kind] -= count
		done := !pack.spent() && pack.fill(i, j+1)
		pack.left[kind] += count
		if done {
			return true
		}
	}
	load.Set(kind, 0)
	return false
}

// mostOf returns how many of a kind fit on a device with its items.
func (pack *packing) mostOf(load *assignment.Load, kind int) int {
	if !load.Allows(kind) {
		return 0
	}
	lo, hi := 0, pack.left[kind]+1 // lo fits, hi does not
	for lo+1 < hi {
		mid := (lo + hi) / 2
		load.Set(kind, mid)
		if load.Need() <= pack.caps[load.Device] {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// first reports that device order[i] must have an item of kind kinds[j]: it is the largest kind
// left, and all devices left are the same.
func (pack *packing) first(i, j int) bool {
	for _, kind := range pack.kinds[:j] {
		if pack.left[kind] > 0 || pack.loads[pack.order[i]].Counts[kind] > 0 {
			return false
		}
	}
	like := pack.under.problem.Devices[pack.order[i]].Like
	for _, device := range pack.order[i:] {
		if pack.under.problem.Devices[device].Like != like {
			return false
		}
	}
	return pack.left[pack.kinds[j]] > 0
}

// takesAll reports that count items of the kind and all items left of later kinds fit together. The
// search can then skip smaller counts.
func (pack *packing) takesAll(load *assignment.Load, j, count int) bool {
	kind := pack.kinds[j]
	was := load.Counts[kind]
	load.Set(kind, count)
	for _, lesser := range pack.kinds[j+1:] {
		if load.Allows(lesser) {
			load.Set(lesser, pack.left[lesser])
		}
	}
	fits := load.Need() <= pack.caps[load.Device]
	for _, lesser := range pack.kinds[j+1:] {
		load.Set(lesser, 0)
	}
	load.Set(kind, was)
	return fits
}

// takesMore reports that a device has free memory for another item.
func (pack *packing) takesMore(load *assignment.Load) bool {
	for kind, count := range pack.left {
		if count == 0 || !load.Allows(kind) {
			continue
		}
		load.Add(kind, 1)
		fits := load.Need() <= pack.caps[load.Device]
		load.Add(kind, -1)
		if fits {
			return true
		}
	}
	return false
}
