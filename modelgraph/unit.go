package modelgraph

import (
	"fmt"
	"slices"
	"strings"
)

// group makes the wrap units of consecutive layers with the same unit name.
func (graph *Graph) group() error {
	seen := make(map[string]int)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		name := layer.Unit
		if name == "" {
			name = layer.Name
		}
		if count := len(graph.Units); count > 0 && graph.Units[count-1].Name == name {
			graph.Units[count-1].End = i + 1
			layer.UnitIndex = count - 1
			continue
		}
		if j, ok := seen[name]; ok {
			return placeError(fmt.Sprintf("layers[%d].unit", i), "%q is not consecutive: unit %d ended before %q", name, j, graph.Layers[i-1].Name)
		}
		seen[name] = len(graph.Units)
		layer.UnitIndex = len(graph.Units)
		graph.Units = append(graph.Units, Unit{Name: name, First: i, End: i + 1, tie: -1})
	}
	holder := graph.holders()
	for unit := range graph.Units {
		keys, err := graph.unitKeys(unit, holder)
		if err != nil {
			return err
		}
		graph.Units[unit].Keys = keys
		graph.Units[unit].Inputs = graph.unitInputs(unit)
	}
	graph.setKinds()
	return nil
}

// holders maps each module path to the unit that has all layers inside it, or -1 if there are
// several.
func (graph *Graph) holders() map[string]int {
	holder := make(map[string]int, 2*len(graph.Layers))
	for i := range graph.Layers {
		unit := graph.Layers[i].UnitIndex
		for path := graph.Layers[i].Name; path != ""; path = parent(path) {
			if node, ok := holder[path]; ok && node != unit {
				unit = -1
			}
			holder[path] = unit
		}
	}
	return holder
}

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

// unitKeys returns keys that name only this unit. They are its own name if that is a module with
// all its layers and no others. Else they are the layers' names, else the names of their tensors.
func (graph *Graph) unitKeys(unitIndex int, holder map[string]int) ([]string, error) {
	unit := &graph.Units[unitIndex]
	own, ok := holder[unit.Name]
	whole := ok && own == unitIndex
	for i := unit.First; i < unit.End; i++ {
		name := graph.Layers[i].Name
		whole = whole && (name == unit.Name || strings.HasPrefix(name, unit.Name+"."))
	}
	if whole {
		return []string{unit.Name}, nil
	}
	var keys []string
	for i := unit.First; i < unit.End; i++ {
		layer := &graph.Layers[i]
		switch own := tensorKeys(layer, holder); {
		case graph.insideSibling(layer, unitIndex, holder):
		case holder[layer.Name] == unitIndex:
			keys = append(keys, layer.Name)
		case own == nil:
			return nil, placeError(fmt.Sprintf("layers[%d].name", i), "layers of other units lie inside %q: no key of a device map means it alone", layer.Name)
		default:
			keys = append(keys, own...)
		}
	}
	return keys, nil
}

// tensorKeys returns the names of a layer's tensors, or nil if other layers are inside one of
// those.
func tensorKeys(layer *Layer, holder map[string]int) []string {
	var keys []string
	for _, ts := range [][]Tensor{layer.Params, layer.Buffers} {
		for j := range ts {
			full := FullName(layer.Name, ts[j].Name)
			if _, ok := holder[full]; ok {
				return nil
			}
			keys = append(keys, full)
		}
	}
	return keys
}

// insideSibling reports whether a layer is inside another layer of its unit.
func (graph *Graph) insideSibling(layer *Layer, unit int, holder map[string]int) bool {
	for path := parent(layer.Name); path != ""; path = parent(path) {
		if _, ok := graph.layerIndex[path]; ok && holder[path] == unit {
			return true
		}
	}
	return false
}

func (graph *Graph) unitInputs(unit int) []int {
	var in []int
	for i := graph.Units[unit].First; i < graph.Units[unit].End; i++ {
		for _, j := range graph.Layers[i].InputLayers {
			if node := graph.Layers[j].UnitIndex; node != unit {
				in = append(in, node)
			}
		}
	}
	slices.Sort(in)
	return slices.Compact(in)
}

// joinTies merges tie groups that meet in a unit, since the unit cannot be split, and sets each
// unit's group.
func (graph *Graph) joinTies(layerOf map[string]int) {
	for tie, names := range graph.Ties {
		for _, name := range names {
			unit := graph.Layers[layerOf[name]].UnitIndex
			if old := graph.Units[unit].tie; old >= 0 {
				graph.retie(old, tie)
			}
			graph.Units[unit].tie = tie
		}
	}
}

func (graph *Graph) retie(from, to int) {
	for unit := range graph.Units {
		if graph.Units[unit].tie == from {
			graph.Units[unit].tie = to
		}
	}
}

// TiedUnits returns sets of units that must share a device because they share parameters or are
// joined ([Join]), each ascending. A single unit that shares only with itself is not a set.
func (graph *Graph) TiedUnits() [][]int {
	byTie := make(map[int][]int)
	var order []int
	for unit := range graph.Units {
		if tie := graph.Units[unit].tie; tie >= 0 {
			if byTie[tie] == nil {
				order = append(order, tie)
			}
			byTie[tie] = append(byTie[tie], unit)
		}
	}
	var sets [][]int
	for _, tie := range order {
		if len(byTie[tie]) > 1 {
			sets = append(sets, byTie[tie])
		}
	}
	return sets
}
