package partition

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// CycleError says that the nodes cannot be put in order.
type CycleError struct {
	// Names are the nodes of one cycle, each feeding the next and the last
	// the first.
	Names []string
}

func (e *CycleError) Error() string {
	return fmt.Sprintf("the graph has a cycle: %s → %s", strings.Join(e.Names, " → "), e.Names[0])
}

// acyclic looks for a cycle in the nodes' own edges, before groups are formed.
func (p *Problem) acyclic() error {
	g := simple.NewDirectedGraph()
	for v := range p.Nodes {
		g.AddNode(simple.Node(v))
	}
	for _, e := range p.Edges {
		g.SetEdge(g.NewEdge(simple.Node(e[0]), simple.Node(e[1])))
	}
	if _, err := topo.Sort(g); err == nil {
		return nil
	}
	for _, part := range topo.TarjanSCC(g) {
		if len(part) > 1 {
			inside := make(map[int64]bool)
			start := part[0].ID()
			for _, n := range part {
				inside[n.ID()] = true
				start = min(start, n.ID())
			}
			return p.cycleIn(g, inside, start)
		}
	}
	return nil
}

// cycleIn walks inside a strongly connected component, where every node has a
// successor, until it comes back to where it has been.
func (p *Problem) cycleIn(g *simple.DirectedGraph, inside map[int64]bool, v int64) *CycleError {
	at := make(map[int64]int)
	var names []string
	for {
		if first, seen := at[v]; seen {
			return &CycleError{names[first:]}
		}
		at[v] = len(names)
		names = append(names, p.Nodes[v].Name)
		next := int64(-1)
		for it := g.From(v); it.Next(); {
			if id := it.Node().ID(); inside[id] && (next < 0 || id < next) {
				next = id
			}
		}
		v = next
	}
}
