package modelgraph

import (
	"fmt"
	"slices"
	"strings"
)

// group makes the wrap units: consecutive layers of the same unit name.
func (g *Graph) group() error {
	seen := make(map[string]int)
	for i := range g.Layers {
		l := &g.Layers[i]
		name := l.Unit
		if name == "" {
			name = l.Name
		}
		if n := len(g.Units); n > 0 && g.Units[n-1].Name == name {
			g.Units[n-1].End = i + 1
			l.unit = n - 1
			continue
		}
		if j, ok := seen[name]; ok {
			return placeError(fmt.Sprintf("layers[%d].unit", i), "%q is not consecutive: unit %d ended before %q", name, j, g.Layers[i-1].Name)
		}
		seen[name] = len(g.Units)
		l.unit = len(g.Units)
		g.Units = append(g.Units, Unit{Name: name, First: i, End: i + 1, Tie: -1})
	}
	holder := g.holders()
	for u := range g.Units {
		keys, err := g.unitKeys(u, holder)
		if err != nil {
			return err
		}
		g.Units[u].Keys = keys
		g.Units[u].Inputs = g.unitInputs(u)
	}
	return nil
}

// holders maps each module path to the unit that has all layers inside it, or
// -1 where several units do.
func (g *Graph) holders() map[string]int {
	holder := make(map[string]int, 2*len(g.Layers))
	for i := range g.Layers {
		u := g.Layers[i].unit
		for path := g.Layers[i].Name; path != ""; path = parent(path) {
			if v, ok := holder[path]; ok && v != u {
				u = -1
			}
			holder[path] = u
		}
	}
	return holder
}

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

// unitKeys is the unit's own name where that is a module holding all its
// layers and no others, else the layers' names, else those of their tensors:
// keys that stand for this unit alone.
func (g *Graph) unitKeys(u int, holder map[string]int) ([]string, error) {
	unit := &g.Units[u]
	own, ok := holder[unit.Name]
	whole := ok && own == u
	for i := unit.First; i < unit.End; i++ {
		n := g.Layers[i].Name
		whole = whole && (n == unit.Name || strings.HasPrefix(n, unit.Name+"."))
	}
	if whole {
		return []string{unit.Name}, nil
	}
	var keys []string
	for i := unit.First; i < unit.End; i++ {
		l := &g.Layers[i]
		switch own := tensorKeys(l, holder); {
		case g.insideSibling(l, u, holder):
		case holder[l.Name] == u:
			keys = append(keys, l.Name)
		case own == nil:
			return nil, placeError(fmt.Sprintf("layers[%d].name", i), "layers of other units lie inside %q: no key of a device map means it alone", l.Name)
		default:
			keys = append(keys, own...)
		}
	}
	return keys, nil
}

// tensorKeys are the names of a layer's tensors; none where other layers lie
// inside one of those.
func tensorKeys(l *Layer, holder map[string]int) []string {
	var keys []string
	for _, ts := range [][]Tensor{l.Params, l.Buffers} {
		for j := range ts {
			full := FullName(l.Name, ts[j].Name)
			if _, ok := holder[full]; ok {
				return nil
			}
			keys = append(keys, full)
		}
	}
	return keys
}

// insideSibling reports a layer that lies inside another layer of its unit.
func (g *Graph) insideSibling(l *Layer, u int, holder map[string]int) bool {
	for path := parent(l.Name); path != ""; path = parent(path) {
		if _, ok := g.layerIndex[path]; ok && holder[path] == u {
			return true
		}
	}
	return false
}

func (g *Graph) unitInputs(u int) []int {
	var in []int
	for i := g.Units[u].First; i < g.Units[u].End; i++ {
		for _, j := range g.Layers[i].inputs {
			if v := g.Layers[j].unit; v != u {
				in = append(in, v)
			}
		}
	}
	slices.Sort(in)
	return slices.Compact(in)
}

// joinTies merges tie groups that meet in a unit, since the unit cannot be
// split, and notes each unit's group.
func (g *Graph) joinTies() {
	for t := range g.Ties {
		slices.Sort(g.Ties[t].Units)
		g.Ties[t].Units = slices.Compact(g.Ties[t].Units)
	}
	for t, group := range g.Ties {
		for _, u := range group.Units {
			if old := g.Units[u].Tie; old >= 0 {
				g.retie(old, t)
			}
			g.Units[u].Tie = t
		}
	}
}

func (g *Graph) retie(from, to int) {
	for u := range g.Units {
		if g.Units[u].Tie == from {
			g.Units[u].Tie = to
		}
	}
}

// TiedUnits lists, per set of units that must share a device because they
// share parameters, the units in it, ascending. A single unit that shares
// only with itself makes no set.
func (g *Graph) TiedUnits() [][]int {
	byTie := make(map[int][]int)
	var order []int
	for u := range g.Units {
		if t := g.Units[u].Tie; t >= 0 {
			if byTie[t] == nil {
				order = append(order, t)
			}
			byTie[t] = append(byTie[t], u)
		}
	}
	var sets [][]int
	for _, t := range order {
		if len(byTie[t]) > 1 {
			sets = append(sets, byTie[t])
		}
	}
	return sets
}
