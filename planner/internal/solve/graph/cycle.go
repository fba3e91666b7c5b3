package graph

import (
	"errors"
	"slices"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// Orderable reports that edges between count vertices have no cycle. It removes vertices that no
// edge leads to until none is left (Kahn, CACM 5, 1962). It needs only a few numbers for each
// vertex and edge, so [Cycle] calls it first.
func Orderable(count int, edges [][2]int) bool {
	first, waits := make([]int32, count+1), make([]int32, count)
	for _, edge := range edges {
		first[edge[0]+1]++
		waits[edge[1]]++
	}
	for vertex := range count {
		first[vertex+1] += first[vertex]
	}
	heads, filled := make([]int32, len(edges)), slices.Clone(first)
	for _, edge := range edges {
		heads[filled[edge[0]]] = int32(edge[1])
		filled[edge[0]]++
	}
	ready := make([]int32, 0, count)
	for vertex, count := range waits {
		if count == 0 {
			ready = append(ready, int32(vertex))
		}
	}
	for i := 0; i < len(ready); i++ {
		for _, to := range heads[first[ready[i]]:first[ready[i]+1]] {
			waits[to]--
			if waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return len(ready) == count
}

// Cycle returns the vertices of one cycle of a graph, each leading to the next and the last to the
// first; nil if there is none.
func Cycle(count int, edges [][2]int) []int {
	if Orderable(count, edges) {
		return nil
	}
	directed := simple.NewDirectedGraph()
	for vertex := range count {
		directed.AddNode(simple.Node(vertex))
	}
	for _, edge := range edges {
		directed.SetEdge(directed.NewEdge(simple.Node(edge[0]), simple.Node(edge[1])))
	}
	var cyclic topo.Unorderable
	if _, err := topo.Sort(directed); !errors.As(err, &cyclic) {
		return nil
	}
	return cycleIn(directed, cyclic[0])
}

// cycleIn walks from the smallest vertex of a strongly connected component, always to the smallest
// successor inside, until a vertex repeats.
func cycleIn(directed graph.Directed, component []graph.Node) []int {
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
