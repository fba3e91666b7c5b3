package planner

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// item is a set of units that share a device: one unit, or those that ties
// and together-groups join.
type item struct {
	units []int // ascending
	pin   int   // device, or -1
	by    Pin   // what pinned it
}

// scatter is a problem of placing items on any device. Items with the same
// costs, and nothing between them in time, are one class: which of them a
// device holds makes no difference to its peak, only how many.
type scatter struct {
	p       *Problem
	items   []item
	itemOf  []int
	classes []class
	slots   []slot
	bins    []bin
	// weightless are the items that hold nothing at any moment.
	weightless []int
	// tooLarge: too many units and devices for the tables of a search.
	tooLarge bool
}

// class is a number of items that are alike.
type class struct {
	items []int
	pin   int
	slots []int
}

// slot is a place in time: units of one class that run one after the other.
type slot struct {
	class int
	runs  []timeline.Summary // of 0, 1, 2, … of them
}

// mostNodes bounds the nodes of all devices' trees, 100 B each.
const mostNodes = 1 << 20

func newScatter(p *Problem) (*scatter, error) {
	s := &scatter{p: p}
	if err := s.makeItems(); err != nil {
		return nil, err
	}
	s.makeSlots()
	s.makeBins()
	s.tooLarge = 2*len(s.slots)*len(s.bins) > mostNodes
	return s, nil
}

// makeItems joins units and reads the pins.
func (s *scatter) makeItems() error {
	joined, err := s.p.together()
	if err != nil {
		return err
	}
	n := len(s.p.Graph.Units)
	root := make([]int, n)
	for u := range root {
		root[u] = u
	}
	find := func(u int) int {
		for root[u] != u {
			root[u] = root[root[u]]
			u = root[u]
		}
		return u
	}
	for _, set := range slices.Concat(s.p.Graph.TiedUnits(), joined) {
		for _, u := range set {
			a, b := find(set[0]), find(u)
			root[max(a, b)] = min(a, b)
		}
	}
	s.itemOf = make([]int, n)
	for u := range n { // a root comes before the units that it stands for
		if r := find(u); r == u {
			s.itemOf[u] = len(s.items)
			s.items = append(s.items, item{units: []int{u}, pin: -1})
		} else {
			i := s.itemOf[r]
			s.itemOf[u] = i
			s.items[i].units = append(s.items[i].units, u)
		}
	}
	return s.readPins()
}

func (s *scatter) readPins() error {
	g, devices := s.p.Graph, len(s.p.Topology.Devices)
	for _, pin := range s.p.Pins {
		if pin.Device < 0 || pin.Device >= devices {
			return &PatternError{"pin", pin.Pattern, fmt.Sprintf("device %d is not among the %d devices", pin.Device, devices)}
		}
		units, err := match(g, "pin", pin.Pattern)
		if err != nil {
			return err
		}
		for _, u := range units {
			it := &s.items[s.itemOf[u]]
			if it.pin >= 0 && it.pin != pin.Device {
				return &PatternError{"pin", pin.Pattern, fmt.Sprintf("%q cannot be on device %d: it, or a unit that must stay with it, is pinned to device %d (by %q)", g.Units[u].Name, pin.Device, it.pin, it.by.Pattern)}
			}
			it.pin, it.by = pin.Device, pin
		}
	}
	return nil
}

// nameOf is the unit that a message names a class by.
func (s *scatter) nameOf(c int) string {
	units := s.items[s.classes[c].items[0]].units
	return s.p.Graph.Units[units[len(units)-1]].Name
}
