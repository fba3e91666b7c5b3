package modelgraph

import "fmt"

// Join makes one device hold all layers of each group, by name: a forward joins
// their results and moves none of them. An unknown layer is a [*SyntaxError].
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
