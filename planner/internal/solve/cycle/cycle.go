// Package cycle names one circle of a graph that cannot be put in order.
package cycle

import "gonum.org/v1/gonum/graph"

// In returns the nodes of a circle inside a strongly connected component of
// more than one node, each feeding the next and the last the first. It walks
// from the component's least node, always to the least successor inside, until
// it is where it has been.
func In(g graph.Directed, component []graph.Node) []int {
	inside := make(map[int64]bool)
	v := component[0].ID()
	for _, n := range component {
		inside[n.ID()] = true
		v = min(v, n.ID())
	}
	at := make(map[int64]int)
	var walk []int
	for {
		if first, seen := at[v]; seen {
			return walk[first:]
		}
		at[v] = len(walk)
		walk = append(walk, int(v))
		next := int64(-1)
		for to := g.From(v); to.Next(); {
			if id := to.Node().ID(); inside[id] && (next < 0 || id < next) {
				next = id
			}
		}
		v = next
	}
}
