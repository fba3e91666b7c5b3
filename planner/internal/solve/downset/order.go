package downset

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// order is an instance with the acyclic forward edges between its items, which contiguous
// placements follow.
type order struct {
	*graph.Instance
	before, after [][]int // direct neighbours, ascending
	// loose, if set, are sizes without those of leaves that were joined for speed. The order is a
	// relaxation with these sizes.
	loose []float64
}

// newOrder contracts groups, and then the items that the order cannot separate. These are the
// strongly connected components of the forward graph (the rule of msr-fiddle/dnn-partitioning,
// throughput-dp), and leaves that lose nothing on their neighbour's device. With coarse, leaves
// join even if their size might be better elsewhere.
func newOrder(problem *graph.Problem, coarse bool) (*order, error) {
	if err := problem.Acyclic(); err != nil {
		return nil, err
	}
	in := graph.NewInstance(problem, problem.Groups())
	edges, err := forward(in)
	if err != nil {
		return nil, err
	}
	if !graph.Orderable(len(in.Nodes), edges) {
		in, edges, _ = contract(in, components(in, edges), edges)
	}
	part := leaves(in, edges, coarse)
	in, edges, loose := contract(in, part, edges)
	out := &order{Instance: in, before: make([][]int, len(in.Nodes)), after: make([][]int, len(in.Nodes))}
	for _, edge := range edges {
		out.after[edge[0]] = append(out.after[edge[0]], edge[1])
		out.before[edge[1]] = append(out.before[edge[1]], edge[0])
	}
	if coarse && !slices.Equal(loose, in.Size) {
		out.loose = loose
	}
	return out, nil
}

// contract joins the items of each part. own is the size of the item that gives a joined one its
// number.
func contract(in *graph.Instance, part []int, edges [][2]int) (next *graph.Instance, arcs [][2]int, own []float64) {
	join := make([]int, len(in.ItemOf))
	for item, i := range in.ItemOf {
		join[item] = part[i]
	}
	next = graph.NewInstance(in.Problem, join)
	own = make([]float64, len(next.Nodes))
	for i := range part {
		if part[i] == i {
			own[next.ItemOf[in.Nodes[i][0]]] = in.Size[i]
		}
	}
	return next, carry(edges, in, next), own
}

// forward returns the edges that order the items. Items with only backward nodes are ordered by
// their backward edges, reversed.
func forward(in *graph.Instance) ([][2]int, error) {
	orphan := make([]bool, len(in.Nodes))
	for i, nodes := range in.Nodes {
		orphan[i] = !slices.ContainsFunc(nodes, func(item int) bool { return !in.Problem.Nodes[item].Backward })
	}
	var edges [][2]int
	for i, edge := range in.Problem.Edges {
		tail, head := &in.Problem.Nodes[edge[0]], &in.Problem.Nodes[edge[1]]
		from, to := in.ItemOf[edge[0]], in.ItemOf[edge[1]]
		switch {
		case tail.Backward && !head.Backward:
			return nil, fmt.Errorf("edges[%d]: the backward node %q feeds the forward node %q; a contiguous placement has no order for that", i, tail.Name, head.Name)
		case !tail.Backward && !head.Backward:
			edges = append(edges, [2]int{from, to})
		case tail.Backward && head.Backward && (orphan[from] || orphan[to]):
			edges = append(edges, [2]int{to, from})
		}
	}
	return carry(edges, in, in), nil
}

// carry converts edges between one instance's items to those of a coarser one, without loops and
// repetitions.
func carry(edges [][2]int, from, to *graph.Instance) [][2]int {
	var out [][2]int
	for _, edge := range edges {
		a, b := to.ItemOf[from.Nodes[edge[0]][0]], to.ItemOf[from.Nodes[edge[1]][0]]
		if a != b {
			out = append(out, [2]int{a, b})
		}
	}
	slices.SortFunc(out, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	return slices.Compact(out)
}

// components numbers the strongly connected components.
func components(in *graph.Instance, edges [][2]int) []int {
	directed := simple.NewDirectedGraph()
	for i := range in.Nodes {
		directed.AddNode(simple.Node(i))
	}
	for _, edge := range edges {
		directed.SetEdge(directed.NewEdge(simple.Node(edge[0]), simple.Node(edge[1])))
	}
	part := make([]int, len(in.Nodes))
	for component, nodes := range topo.TarjanSCC(directed) {
		for _, node := range nodes {
			part[node.ID()] = component
		}
	}
	return part
}
