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

func newWeb(problem *Problem) (*web, error) {
	network := &web{out: make([][]arc, len(problem.Nodes)), in: make([][]arc, len(problem.Nodes)), at: make([]int, len(problem.Nodes))}
	directed := simple.NewDirectedGraph()
	for node := range problem.Nodes {
		directed.AddNode(simple.Node(node))
	}
	for _, edge := range problem.Edges {
		network.out[edge.From] = append(network.out[edge.From], arc{edge.To, edge.Send, edge.Receive})
		network.in[edge.To] = append(network.in[edge.To], arc{edge.From, edge.Send, edge.Receive})
		network.transfers = network.transfers || edge.Send+edge.Receive > 0
		directed.SetEdge(directed.NewEdge(simple.Node(edge.From), simple.Node(edge.To)))
	}
	sorted, err := topo.SortStabilized(directed, nil)
	var cyclic topo.Unorderable
	if errors.As(err, &cyclic) {
		return nil, problem.cycle(directed, cyclic[0])
	}
	if err != nil {
		return nil, err
	}
	for i, node := range sorted {
		network.order = append(network.order, int(node.ID()))
		network.at[node.ID()] = i
	}
	return network, nil
}

// cycle is the error that names one circle.
func (problem *Problem) cycle(directed *simple.DirectedGraph, component []graph.Node) error {
	walk := cycle.In(directed, component)
	var names []string
	for _, node := range append(walk, walk[0]) {
		names = append(names, fmt.Sprintf("%q", problem.Nodes[node].Name))
	}
	return fmt.Errorf("nodes read each other in a circle: %s", strings.Join(names, " → "))
}
