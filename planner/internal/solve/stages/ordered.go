package stages

import (
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// ordered is a graph's neighbours with a linear order.
type ordered struct {
	// Out lists the nodes that read a node, and In the nodes that it reads, one per edge.
	Out, In [][]int
	// Order lists the nodes so that each follows the nodes it reads, as close to the given order as
	// possible. At is a node's place in it.
	Order, At []int
}

// newOrdered orders an acyclic graph of edges (from, to).
func newOrdered(nodes int, edges [][2]int) (*ordered, error) {
	network := &ordered{Out: make([][]int, nodes), In: make([][]int, nodes), At: make([]int, nodes)}
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
	if err != nil {
		return nil, err
	}
	for i, node := range sorted {
		network.Order = append(network.Order, int(node.ID()))
		network.At[node.ID()] = i
	}
	return network, nil
}
