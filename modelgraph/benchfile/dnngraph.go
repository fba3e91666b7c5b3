package benchfile

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// graph is the workload as a model with declared costs, on accelerators: a
// layer is a colour class, or several where a pipeline cannot take them apart.
// Its size stands for its parameters, since the file does not say what is in
// it; the times of its forward and its backward nodes are its two passes.
func (p *DNNPartitioning) graph(file string) (*modelgraph.Graph, error) {
	names := make([]string, len(p.Nodes))
	for v := range p.Nodes {
		names[v] = p.Nodes[v].Name
	}
	if err := cycle(file, names, p.Edges); err != nil {
		return nil, err
	}
	part, count := p.parts()
	nodes := make([]modelgraph.Layer, count)
	size := make([]float64, count)
	trains := slices.ContainsFunc(p.Nodes, func(n dnnLayer) bool { return n.Backward })
	for v := range p.Nodes {
		n, l := &p.Nodes[v], &nodes[part[v]]
		if !n.Supported {
			return nil, &modelgraph.SyntaxError{
				File: file, Place: fmt.Sprintf("nodes[%d].supportedOnFpga", v), Msg: fmt.Sprintf("%q runs on CPUs alone; a plan is for accelerators", n.Name),
			}
		}
		if l.Declared == nil {
			d := modelgraph.NotDeclared()
			d.ForwardSeconds = 0
			if trains {
				d.BackwardSeconds = 0
			}
			l.Name, l.Declared = n.Name, &d
		}
		size[part[v]] += n.Size
		if n.Backward {
			l.Declared.BackwardSeconds += n.Time / 1000
		} else {
			l.Declared.ForwardSeconds += n.Time / 1000
		}
	}
	for i := range nodes {
		nodes[i].Declared.ParamsBytes = bytes(size[i])
	}
	var edges [][2]int
	for _, e := range p.ordering() {
		if from, to := part[e[0]], part[e[1]]; from != to {
			edges = append(edges, [2]int{from, to})
		}
	}
	return layers(file, nodes, edges)
}

// ordering are the edges that a pipeline keeps: the forward ones. A class of
// backward nodes alone takes its place by its backward edges, turned round,
// because the backward pass goes through the stages the other way.
func (p *DNNPartitioning) ordering() [][2]int {
	forward := make(map[int]bool) // classes
	for i := range p.Nodes {
		if !p.Nodes[i].Backward {
			forward[p.Nodes[i].Group] = true
		}
	}
	var edges [][2]int
	for _, e := range p.Edges {
		from, to := &p.Nodes[e[0]], &p.Nodes[e[1]]
		switch {
		case !from.Backward && !to.Backward:
			edges = append(edges, e)
		case from.Backward && to.Backward && (!forward[from.Group] || !forward[to.Group]):
			edges = append(edges, [2]int{e[1], e[0]})
		}
	}
	return edges
}

// parts numbers what has to stay together: colour classes, and classes that
// read each other in a cycle, in the order of the file.
func (p *DNNPartitioning) parts() (part []int, count int) {
	d := simple.NewDirectedGraph()
	for v := range p.Nodes {
		if d.Node(int64(p.Nodes[v].Group)) == nil {
			d.AddNode(simple.Node(p.Nodes[v].Group))
		}
	}
	for _, e := range p.ordering() {
		if from, to := p.Nodes[e[0]].Group, p.Nodes[e[1]].Group; from != to {
			d.SetEdge(d.NewEdge(simple.Node(from), simple.Node(to)))
		}
	}
	component := make(map[int]int)
	for c, groups := range topo.TarjanSCC(d) {
		for _, g := range groups {
			component[int(g.ID())] = c
		}
	}
	number := make(map[int]int)
	part = make([]int, len(p.Nodes))
	for v := range p.Nodes {
		c := component[p.Nodes[v].Group]
		if _, known := number[c]; !known {
			number[c] = len(number)
		}
		part[v] = number[c]
	}
	return part, len(number)
}
