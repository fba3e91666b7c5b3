package modelgraph

import "fmt"

// Join makes one device hold all layers of each group: a forward joins their
// results and moves none of them. Layers that are named before stay joined.
func (graph *Graph) Join(groups [][]string) error {
	for k, names := range groups {
		group := len(graph.Ties) + len(graph.Joined)
		for j, name := range names {
			i, ok := graph.layerIndex[name]
			if !ok {
				return placeError(fmt.Sprintf("joined[%d][%d]", k, j), "unknown layer %q", name)
			}
			unit := &graph.Units[graph.Layers[i].unit]
			if old := unit.tie; old >= 0 {
				graph.retie(old, group)
			}
			unit.tie = group
		}
		if len(names) < 2 {
			return placeError(fmt.Sprintf("joined[%d]", k), "a group needs two layers or more, it has %d", len(names))
		}
		graph.Joined = append(graph.Joined, names)
	}
	return nil
}

// JoinedUnit reports that a forward joins the unit's result with another
// unit's.
func (graph *Graph) JoinedUnit(unit int) bool {
	for _, names := range graph.Joined {
		for _, name := range names {
			if graph.Layers[graph.layerIndex[name]].unit == unit {
				return true
			}
		}
	}
	return false
}
