package instance

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Items are the units of an instance as a chain in the order of the model, with groups outside it.
// Each device takes one run of the chain, and a group may be on any device.
type Items struct {
	In *Instance
	// Order lists the units of the chain, without those of groups. Item i is
	// Order[Start[i]:Start[i+1]].
	Order, Start []int
	// Groups are the units of each tie group, merged if a together-group joins them. GroupOf is a
	// unit's group, or -1. Follow lists the items that must be on a group's device.
	Groups  [][]int
	GroupOf []int
	Follow  [][]int
	// Pins and GroupPins are the pinned devices of items and groups, -1 if free.
	Pins, GroupPins []int

	pinOf map[int]Pin // unit → the pin that fixed it
}

// newItems finds groups and items, and their pins.
func newItems(in *Instance) (*Items, error) {
	items := &Items{In: in, GroupOf: make([]int, len(in.Graph.Units)), pinOf: map[int]Pin{}}
	tied, joined := in.Graph.TiedUnits(), in.joined()
	if in.Piped() { // a tied parameter has a copy on each stage
		tied = nil
		for _, group := range in.Graph.Staged {
			joined = append(joined, group.Units)
		}
		if in.rules().WholeEnds {
			joined = append(joined, wholeEnds(in.Graph.Units)...)
		}
		if !in.rules().Alone {
			joined = append(passing(in.Costs.Units), joined...)
		}
	}
	free, follow := anchor(staying(tied, in.Offloaded), func(unit int) bool { return in.Graph.Units[unit].Joined })
	if len(in.Offloaded) > 0 {
		free = append(free, in.Offloaded)
	}
	joined = append(follow, joined...)
	items.makeGroups(free, joined)
	items.makeItems(joined)
	if err := items.pin(); err != nil {
		return nil, err
	}
	if in.Piped() {
		if err := items.checkStages(); err != nil {
			return nil, err
		}
		if err := items.pinEnds(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Count returns the number of items.
func (items *Items) Count() int { return len(items.Start) - 1 }

// Units returns the units of an item.
func (items *Items) Units(item int) []int { return items.Order[items.Start[item]:items.Start[item+1]] }

// NameOf returns the unit that names an item: the first, or in a pipeline the last, as units that
// pass come first.
func (items *Items) NameOf(item int) int {
	units := items.Units(item)
	if items.In.Piped() {
		return units[len(units)-1]
	}
	return units[0]
}

// Map returns the map of units if device d has the items [cuts[d], cuts[d+1]) and its groups. More
// runs than devices continue at the first device.
func (items *Items) Map(cuts, groupDevice []int) devicemap.Map {
	itemDevice := make([]int, items.Count())
	schedule := costmodel.Schedule{Stages: int64(len(items.In.Topology.Devices))}
	if items.In.Piped() {
		schedule.Kind = items.In.Schedule().Kind
	}
	for run := range len(cuts) - 1 {
		for item := cuts[run]; item < cuts[run+1]; item++ {
			itemDevice[item] = int(schedule.RunRank(int64(run)))
		}
	}
	return items.MapOf(itemDevice, groupDevice)
}

// MapOf returns the map of units for given devices of items and groups.
func (items *Items) MapOf(itemDevice, groupDevice []int) devicemap.Map {
	out := make(devicemap.Map, len(items.GroupOf))
	for item, device := range itemDevice {
		for _, unit := range items.Units(item) {
			out[unit] = devicemap.Device(device)
		}
	}
	for group, units := range items.Groups {
		for _, unit := range units {
			out[unit] = devicemap.Device(groupDevice[group])
		}
	}
	return out
}

// pin resolves the pins to items and groups.
func (items *Items) pin() error {
	items.Pins, items.GroupPins = slices.Repeat([]int{-1}, items.Count()), slices.Repeat([]int{-1}, len(items.Groups))
	itemOf := make(map[int]int)
	for item := range items.Pins {
		for _, unit := range items.Units(item) {
			itemOf[unit] = item
		}
	}
	for _, pin := range items.In.Pins {
		for _, unit := range pin.Units {
			pins, at := items.Pins, itemOf[unit]
			if group := items.GroupOf[unit]; group >= 0 {
				pins, at = items.GroupPins, group
			}
			if old := pins[at]; old >= 0 && old != pin.Device {
				return &ConstraintError{Field: "pin", Pattern: pin.Pattern, Msg: fmt.Sprintf("%q cannot be on device %d: it, or a unit that must stay with it, is pinned to device %d", items.In.Graph.Units[unit].Name, pin.Device, old)}
			}
			pins[at] = pin.Device
			items.pinOf[unit] = pin.Pin
		}
	}
	return nil
}

// HoldLeft returns the items with the offloaded units on a device, which runs them.
func (items *Items) HoldLeft(device int) *Items {
	out := *items
	out.GroupPins = slices.Clone(items.GroupPins)
	out.GroupPins[items.GroupOf[items.In.Offloaded[0]]] = device
	return &out
}
