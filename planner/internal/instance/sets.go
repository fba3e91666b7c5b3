package instance

import (
	"fmt"
	"slices"
)

// Set is units that share a device: a single unit, or units joined by ties and together-groups.
type Set struct {
	Units  []int // ascending
	Device int   // pinned device, or -1
	pin    Pin
}

// newSets joins units by union–find and gives each set its pin. The first unit of a set is its
// root. Sets are in the order of their roots.
func newSets(in *Instance) ([]Set, error) {
	units := len(in.Graph.Units)
	root := make([]int, units)
	for unit := range root {
		root[unit] = unit
	}
	find := func(unit int) int {
		for root[unit] != unit {
			root[unit] = root[root[unit]]
			unit = root[unit]
		}
		return unit
	}
	for _, joined := range slices.Concat(in.Graph.TiedUnits(), in.joined()) {
		for _, unit := range joined {
			one, other := find(joined[0]), find(unit)
			root[max(one, other)] = min(one, other)
		}
	}
	var sets []Set
	setOf := make([]int, units)
	for unit := range units { // a root comes before the other units of its set
		if first := find(unit); first == unit {
			setOf[unit] = len(sets)
			sets = append(sets, Set{Units: []int{unit}, Device: -1})
		} else {
			setOf[unit] = setOf[first]
			sets[setOf[unit]].Units = append(sets[setOf[unit]].Units, unit)
		}
	}
	for _, pin := range in.Pins {
		for _, unit := range pin.Units {
			set := &sets[setOf[unit]]
			if set.Device >= 0 && set.Device != pin.Device {
				return nil, &ConstraintError{Field: "pin", Pattern: pin.Pattern, Msg: fmt.Sprintf("%q cannot be on device %d: it, or a unit that must stay with it, is pinned to device %d (by %q)",
					in.Graph.Units[unit].Name, pin.Device, set.Device, set.pin.Pattern)}
			}
			set.Device, set.pin = pin.Device, pin.Pin
		}
	}
	return sets, nil
}
