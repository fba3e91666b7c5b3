package benchfile

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// graph returns the workload as a model with declared costs, on accelerators. A layer is a colour
// class, or several if a pipeline cannot take them apart. Its size counts as parameters, since the
// file does not say what is in it. The times of its forward and its backward nodes are its two
// passes.
func (file *DNNPartitioning) graph(name string) (*modelgraph.Graph, error) {
	if err := cycle(name, names(file.Nodes), file.Edges); err != nil {
		return nil, err
	}
	part, count := file.parts()
	nodes := make([]modelgraph.Layer, count)
	size := make([]float64, count)
	trains := slices.ContainsFunc(file.Nodes, func(node dnnLayer) bool { return node.Backward })
	for vertex := range file.Nodes {
		node, layer := &file.Nodes[vertex], &nodes[part[vertex]]
		if !node.Supported {
			return nil, &modelgraph.SyntaxError{
				File: name, Place: fmt.Sprintf("nodes[%d].supportedOnFpga", vertex), Msg: fmt.Sprintf("%q runs on CPUs alone; a plan is for accelerators", node.Name),
			}
		}
		if layer.Declared == nil {
			declared := modelgraph.NotDeclared()
			declared.ForwardSeconds = 0
			if trains {
				declared.BackwardSeconds = 0
			}
			layer.Name, layer.Declared = node.Name, &declared
		}
		size[part[vertex]] += node.Size
		if node.Backward {
			layer.Declared.BackwardSeconds += node.Time / 1000
		} else {
			layer.Declared.ForwardSeconds += node.Time / 1000
		}
	}
	for i := range nodes {
		nodes[i].Declared.ParamsBytes = wholeBytes(size[i])
	}
	var edges [][2]int
	for _, edge := range file.ordering() {
		if from, to := part[edge[0]], part[edge[1]]; from != to {
			edges = append(edges, [2]int{from, to})
		}
	}
	return layers(name, nodes, edges)
}

// ordering returns the edges that a pipeline keeps: the forward ones. A class of backward nodes
// alone is ordered by its backward edges in the opposite direction. The backward pass runs through
// the stages the other way.
func (file *DNNPartitioning) ordering() [][2]int {
	forward := make(map[int]bool) // classes
	for i := range file.Nodes {
		if !file.Nodes[i].Backward {
			forward[file.Nodes[i].Group] = true
		}
	}
	var edges [][2]int
	for _, edge := range file.Edges {
		from, to := &file.Nodes[edge[0]], &file.Nodes[edge[1]]
		switch {
		case !from.Backward && !to.Backward:
			edges = append(edges, edge)
		case from.Backward && to.Backward && (!forward[from.Group] || !forward[to.Group]):
			edges = append(edges, [2]int{edge[1], edge[0]})
		}
	}
	return edges
}

// parts numbers the groups of nodes that must stay together, in the order of the file. A group is a
// colour class, or several that read each other in a cycle.
func (file *DNNPartitioning) parts() (part []int, count int) {
	directed := simple.NewDirectedGraph()
	for node := range file.Nodes {
		if directed.Node(int64(file.Nodes[node].Group)) == nil {
			directed.AddNode(simple.Node(file.Nodes[node].Group))
		}
	}
	for _, edge := range file.ordering() {
		if from, to := file.Nodes[edge[0]].Group, file.Nodes[edge[1]].Group; from != to {
			directed.SetEdge(directed.NewEdge(simple.Node(from), simple.Node(to)))
		}
	}
	component := make(map[int]int)
	for c, groups := range topo.TarjanSCC(directed) {
		for _, group := range groups {
			component[int(group.ID())] = c
		}
	}
	number := make(map[int]int)
	part = make([]int, len(file.Nodes))
	for node := range file.Nodes {
		c := component[file.Nodes[node].Group]
		if _, known := number[c]; !known {
			number[c] = len(number)
		}
		part[node] = number[c]
	}
	return part, len(number)
}
