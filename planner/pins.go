package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// PatternError is a pin or together-group that cannot be kept.
type PatternError struct {
	Flag, Pattern, Msg string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("%s %q: %s", e.Flag, e.Pattern, e.Msg) }

// match lists the units that a pattern names: those it is the path of, those
// inside the module it names, those that hold the layer it names, or with a
// trailing * those that begin with it.
func match(g *modelgraph.Graph, flag, pattern string) ([]int, error) {
	var units []int
	stem, wild := strings.CutSuffix(pattern, "*")
	for u := range g.Units {
		names := slices.Clone(g.Units[u].Keys)
		for i := g.Units[u].First; i < g.Units[u].End; i++ {
			names = append(names, g.Layers[i].Name)
		}
		if slices.ContainsFunc(names, func(n string) bool {
			return n == pattern || strings.HasPrefix(n, pattern+".") || wild && strings.HasPrefix(n, stem)
		}) {
			units = append(units, u)
		}
	}
	if len(units) == 0 {
		return nil, &PatternError{flag, pattern, fmt.Sprintf("no module matches; the nearest is %q", nearest(g, pattern))}
	}
	return units, nil
}

func nearest(g *modelgraph.Graph, pattern string) string {
	names := make([]string, len(g.Layers))
	for i := range g.Layers {
		names[i] = g.Layers[i].Name
	}
	return devicemap.Nearest(pattern, names)
}

// together resolves the together-groups to units.
func (p *Problem) together() ([][]int, error) {
	var sets [][]int
	for _, patterns := range p.Together {
		var set []int
		for _, pattern := range patterns {
			units, err := match(p.Graph, "together", pattern)
			if err != nil {
				return nil, err
			}
			set = append(set, units...)
		}
		slices.Sort(set)
		sets = append(sets, slices.Compact(set))
	}
	return sets, nil
}

// pins are the devices of items and groups, -1 where free.
type pins struct {
	items, groups []int
	by            map[int]Pin // unit → the pin that fixed it
}

// pins resolves the pins to items and groups of a layout.
func (l *layout) pins() (*pins, error) {
	out := &pins{items: filled(len(l.start)-1, -1), groups: filled(len(l.groups), -1), by: map[int]Pin{}}
	itemOf := make(map[int]int)
	for i := range out.items {
		for _, u := range l.order[l.start[i]:l.start[i+1]] {
			itemOf[u] = i
		}
	}
	for _, pin := range l.p.Pins {
		if pin.Device < 0 || pin.Device >= len(l.p.Topology.Devices) {
			return nil, &PatternError{"pin", pin.Pattern, fmt.Sprintf("device %d is not among the %d devices", pin.Device, len(l.p.Topology.Devices))}
		}
		units, err := match(l.p.Graph, "pin", pin.Pattern)
		if err != nil {
			return nil, err
		}
		for _, u := range units {
			slot := &out.items
			at := itemOf[u]
			if g := l.groupOf[u]; g >= 0 {
				slot, at = &out.groups, g
			}
			if old := (*slot)[at]; old >= 0 && old != pin.Device {
				return nil, &PatternError{"pin", pin.Pattern, fmt.Sprintf("%q cannot be on device %d: it, or a unit that must stay with it, is pinned to device %d", l.p.Graph.Units[u].Name, pin.Device, old)}
			}
			(*slot)[at] = pin.Device
			out.by[u] = pin
		}
	}
	return out, nil
}

func filled(n, v int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = v
	}
	return s
}
