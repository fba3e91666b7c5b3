package instance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// match lists the units that a pattern names: the unit or the layer with this path, or all units in
// the module with this path. A trailing * matches any ending.
func match(graph *modelgraph.Graph, field, pattern string) ([]int, error) {
	var units []int
	stem, wild := strings.CutSuffix(pattern, "*")
	for unit := range graph.Units {
		names := slices.Clone(graph.Units[unit].Keys)
		for i := graph.Units[unit].First; i < graph.Units[unit].End; i++ {
			names = append(names, graph.Layers[i].Name)
		}
		if slices.ContainsFunc(names, func(name string) bool {
			return name == pattern || strings.HasPrefix(name, pattern+".") || wild && strings.HasPrefix(name, stem)
		}) {
			units = append(units, unit)
		}
	}
	if len(units) == 0 {
		return nil, &ConstraintError{Field: field, Pattern: pattern, Msg: "no module matches" + near(graph, pattern)}
	}
	return units, nil
}

func closest(graph *modelgraph.Graph, pattern string) string {
	names := make([]string, len(graph.Layers))
	for i := range graph.Layers {
		names[i] = graph.Layers[i].Name
	}
	return strings.Join(modelgraph.Nearest(pattern, names, 1, len(pattern)+1), "")
}

// Pin fixes the units that a pattern names to a device.
type Pin = devicemap.Pin

// Pinned is a pin with the units that it names.
type Pinned struct {
	Pin
	Units []int
}

// resolvePins finds the units of each pin.
func resolvePins(graph *modelgraph.Graph, devices int, pins []Pin) ([]Pinned, error) {
	var out []Pinned
	for _, pin := range pins {
		if pin.Device < 0 || pin.Device >= devices {
			return nil, &ConstraintError{Field: "pin", Pattern: pin.Pattern, Msg: fmt.Sprintf("device %d is not among the %d devices", pin.Device, devices)}
		}
		units, err := match(graph, "pin", pin.Pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, Pinned{pin, units})
	}
	return out, nil
}

// Joined is a together-group with the units that it names, ascending.
type Joined struct {
	Patterns []string
	Units    []int
}

// resolveTogether finds the units of each together-group.
func resolveTogether(graph *modelgraph.Graph, together [][]string) ([]Joined, error) {
	var out []Joined
	for _, patterns := range together {
		var units []int
		for _, pattern := range patterns {
			named, err := match(graph, "together", pattern)
			if err != nil {
				return nil, err
			}
			units = append(units, named...)
		}
		slices.Sort(units)
		out = append(out, Joined{patterns, slices.Compact(units)})
	}
	return out, nil
}

// Constraints are the pins and together-groups that every map must keep, in the caller's order.
type Constraints struct {
	Pins     []Pinned
	Together []Joined
}

// joined returns the units of the together-groups.
func (constraints *Constraints) joined() [][]int {
	var out [][]int
	for i := range constraints.Together {
		out = append(out, constraints.Together[i].Units)
	}
	return out
}

// near returns a hint with the closest module name; empty if none is close.
func near(graph *modelgraph.Graph, pattern string) string {
	if name := closest(graph, pattern); name != "" {
		return fmt.Sprintf("; the nearest is %q", name)
	}
	return ""
}
