package modelgraph

import "fmt"

// Join puts all layers of each group on one device, by name: a forward joins their results and does
// not move them. The error for an unknown layer is a [*SyntaxError].
func Join(graph *Graph, groups [][]string) error {
	for k, names := range groups {
		group := len(graph.Ties) + len(graph.Joined)
		for j, name := range names {
			i, ok := graph.layerIndex[name]
			if !ok {
				return placeError(fmt.Sprintf("joined[%d][%d]", k, j), "unknown layer %q", name)
			}
			unit := &graph.Units[graph.Layers[i].UnitIndex]
			if old := unit.tie; old >= 0 {
				graph.retie(old, group)
			}
			unit.tie, unit.Joined = group, true
		}
		if len(names) < 2 {
			return placeError(fmt.Sprintf("joined[%d]", k), "a group needs two layers or more, it has %d", len(names))
		}
		graph.Joined = append(graph.Joined, names)
	}
	return nil
}

// stagedGroup is layers whose results or weights a forward uses again after a later stage could
// run.
type stagedGroup struct {
	// The layers, by name.
	Layers []string `json:"layers"`
	// The line that binds them, in a sentence.
	Why string `json:"why,omitzero"`
	// Units are the units of the layers.
	Units []int `json:"-"`
}

// stage finds the units of staged groups.
func stage(graph *Graph) error {
	for k := range graph.Staged {
		group := &graph.Staged[k]
		for j, name := range group.Layers {
			i, ok := graph.layerIndex[name]
			if !ok {
				return placeError(fmt.Sprintf("staged[%d].layers[%d]", k, j), "unknown layer %q", name)
			}
			group.Units = append(group.Units, graph.Layers[i].UnitIndex)
		}
	}
	return nil
}
