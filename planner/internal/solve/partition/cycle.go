package partition

import (
	"errors"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/devmap-dev/devmap/planner/internal/solve/cycle"
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
	var cyclic topo.Unorderable
	if _, err := topo.Sort(g); !errors.As(err, &cyclic) {
		return err
	}
	var names []string
	for _, v := range cycle.In(g, cyclic[0]) {
		names = append(names, p.Nodes[v].Name)
	}
	return &CycleError{names}
}
