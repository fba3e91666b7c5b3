// Package lattice lists the down-sets of a graph: sets that hold, with a node,
// all that it reads. A stage of a pipeline is the difference of two.
package lattice

import (
	"errors"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/devmap-dev/devmap/planner/internal/solve/cycle"
)

// Graph is a graph by neighbours, with a linear order.
type Graph struct {
	// Out are the nodes that read a node, In those that it reads, one an edge.
	Out, In [][]int
	// Order lists the nodes so that each follows what it reads, as near to the
	// order given as that goes; At is a node's place in it.
	Order, At []int
}

// New orders a graph of edges (from, to). Where it has a circle there is no
// graph, but the nodes of one circle, each read by the next.
func New(nodes int, edges [][2]int) (network *Graph, circle []int, err error) {
	network = &Graph{Out: make([][]int, nodes), In: make([][]int, nodes), At: make([]int, nodes)}
	directed := simple.NewDirectedGraph()
	for node := range nodes {
		directed.AddNode(simple.Node(node))
	}
	for _, edge := range edges {
		from, to := edge[0], edge[1]
		network.Out[from] = append(network.Out[from], to)
		network.In[to] = append(network.In[to], from)
		directed.SetEdge(directed.NewEdge(simple.Node(from), simple.Node(to)))
	}
	sorted, err := topo.SortStabilized(directed, nil)
	var cyclic topo.Unorderable
	if errors.As(err, &cyclic) {
		return nil, cycle.In(directed, cyclic[0]), nil
	}
	if err != nil {
		return nil, nil, err
	}
	for i, node := range sorted {
		network.Order = append(network.Order, int(node.ID()))
		network.At[node.ID()] = i
	}
	return network, nil, nil
}
