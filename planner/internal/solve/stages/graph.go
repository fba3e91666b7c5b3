package stages

import (
	"errors"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/devmap-dev/devmap/planner/internal/solve/cycle"
)

// web is the problem's graph by neighbours, with a linear order.
type web struct {
	out, in [][]arc
	// order lists the nodes so that each follows what it reads, as near to the
	// order given as that goes; at is a node's place in it.
	order, at []int
	// transfers: some edge costs time.
	transfers bool
}

type arc struct {
	node          int
	send, receive float64
}

func newWeb(p *Problem) (*web, error) {
	w := &web{out: make([][]arc, len(p.Nodes)), in: make([][]arc, len(p.Nodes)), at: make([]int, len(p.Nodes))}
	d := simple.NewDirectedGraph()
	for v := range p.Nodes {
		d.AddNode(simple.Node(v))
	}
	for _, e := range p.Edges {
		w.out[e.From] = append(w.out[e.From], arc{e.To, e.Send, e.Receive})
		w.in[e.To] = append(w.in[e.To], arc{e.From, e.Send, e.Receive})
		w.transfers = w.transfers || e.Send+e.Receive > 0
		d.SetEdge(d.NewEdge(simple.Node(e.From), simple.Node(e.To)))
	}
	sorted, err := topo.SortStabilized(d, nil)
	var cyclic topo.Unorderable
	if errors.As(err, &cyclic) {
		return nil, p.cycle(d, cyclic[0])
	}
	if err != nil {
		return nil, err
	}
	for i, n := range sorted {
		w.order = append(w.order, int(n.ID()))
		w.at[n.ID()] = i
	}
	return w, nil
}

// cycle is the error that names one circle.
func (p *Problem) cycle(d *simple.DirectedGraph, component []graph.Node) error {
	walk := cycle.In(d, component)
	var names []string
	for _, v := range append(walk, walk[0]) {
		names = append(names, fmt.Sprintf("%q", p.Nodes[v].Name))
	}
	return fmt.Errorf("nodes read each other in a circle: %s", strings.Join(names, " → "))
}
