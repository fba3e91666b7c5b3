package assigntime

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// descend improves the map until no change does. A change moves one item, moves a run of units with
// their groups, or exchanges two items.
func (search *localSearch) descend() {
	for !search.stopped() && (search.moveItems() || search.moveStretches() || search.swapItems()) {
		continue
	}
}

// put moves an item unless it is pinned.
func (search *localSearch) put(placement devicemap.Map, i int, device devicemap.Device) {
	it := &search.problem.Items[i]
	if it.Device >= 0 {
		return
	}
	for _, unit := range it.Units {
		placement[unit] = device
	}
}

// stretch moves the items of the units [a, b).
func (search *localSearch) stretch(placement devicemap.Map, a, b int, device devicemap.Device) {
	for unit := a; unit < b; unit++ {
		search.put(placement, search.problem.ItemOf[unit], device)
	}
}

func (search *localSearch) deviceOf(i int) devicemap.Device {
	return search.at[search.problem.Items[i].Units[0]]
}

func (search *localSearch) moveItems() (moved bool) {
	for i := range search.problem.Items {
		for device := devicemap.Device(0); int(device) < len(search.units) && search.problem.Items[i].Device < 0; device++ {
			if search.stopped() {
				return moved
			}
			if device != search.deviceOf(i) && search.try(func(placement devicemap.Map) { search.put(placement, i, device) }) {
				moved = true
			}
		}
	}
	return moved
}

// everyLength is the longest run for which descend tries all lengths; above, it tries powers of
// two.
const everyLength = 64

func (search *localSearch) moveStretches() (moved bool) {
	count := len(search.at)
	for length := 2; length <= count; {
		for a := 0; a+length <= count; a++ {
			for device := range search.units {
				if search.stopped() {
					return moved
				}
				if search.try(func(placement devicemap.Map) { search.stretch(placement, a, a+length, devicemap.Device(device)) }) {
					moved = true
				}
			}
		}
		if length < everyLength {
			length++
		} else {
			length *= 2
		}
	}
	return moved
}

func (search *localSearch) swapItems() (moved bool) {
	for i := range search.problem.Items {
		for j := range i {
			if search.stopped() {
				return moved
			}
			device, other := search.deviceOf(i), search.deviceOf(j)
			if device == other || search.problem.Items[i].Device >= 0 || search.problem.Items[j].Device >= 0 {
				continue
			}
			if search.try(func(placement devicemap.Map) { search.put(placement, i, other); search.put(placement, j, device) }) {
				moved = true
			}
		}
	}
	return moved
}

// kick moves a few items to random devices; it returns false if no try fits.
func (search *localSearch) kick() bool {
	const tries = 20
	for range tries {
		copy(search.next, search.at)
		for range 1 + search.rng.IntN(3) {
			unit, device := search.rng.IntN(len(search.at)), devicemap.Device(search.rng.IntN(len(search.units)))
			search.stretch(search.next, unit, min(len(search.at), unit+1+search.rng.IntN(len(search.at))), device)
		}
		if _, fits := search.share(search.next); fits {
			copy(search.at, search.next)
			search.score = search.scoreOf(search.at)
			return true
		}
	}
	return false
}
