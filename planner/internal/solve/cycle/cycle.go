// Package cycle names one circle of a graph that cannot be put in order.
package cycle

import "gonum.org/v1/gonum/graph"

// In returns the nodes of a circle inside a strongly connected component of
// more than one node, each feeding the next and the last the first. It walks
// from the component's least node, always to the least successor inside, until
// it is where it has been.
func In(directed graph.Directed, component []graph.Node) []int {
	inside := make(map[int64]bool)
	value := component[0].ID()
	for _, node := range component {
		inside[node.ID()] = true
		value = min(value, node.ID())
	}
	at := make(map[int64]int)
	var walk []int
	for {
		if first, seen := at[value]; seen {
			return walk[first:]
		}
		at[value] = len(walk)
		walk = append(walk, int(value))
		next := int64(-1)
		for to := directed.From(value); to.Next(); {
			if id := to.Node().ID(); inside[id] && (next < 0 || id < next) {
				next = id
			}
		}
		value = next
	}
}
