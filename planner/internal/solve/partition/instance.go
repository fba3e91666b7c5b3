package partition

import (
	"maps"
	"slices"
)

// instance is a problem in the form that the solvers work on: groups are
// items, and what an original node sends is a net.
type instance struct {
	p *Problem
	// nodes are an item's nodes; itemOf is a node's item.
	nodes  [][]int
	itemOf []int
	// time is indexed by kind, then item.
	time [][]float64
	size []float64
	nets []net
	// touching are the nets that an item sends or reads.
	touching [][]int
}

// net is one node's output that other items read. A device pays its cost once
// where the net crosses the device's edge: it holds the source and not all
// sinks, or some sink and not the source.
type net struct {
	cost   float64
	source int
	sinks  []int // items, ascending, without the source
}

// newInstance contracts the nodes that join maps to the same number.
func newInstance(p *Problem, join []int) *instance {
	in := &instance{p: p, itemOf: make([]int, len(p.Nodes))}
	seen := make(map[int]int)
	for v, g := range join {
		i, ok := seen[g]
		if !ok {
			i = len(in.nodes)
			seen[g] = i
			in.nodes = append(in.nodes, nil)
		}
		in.itemOf[v] = i
		in.nodes[i] = append(in.nodes[i], v)
	}
	in.size = make([]float64, len(in.nodes))
	in.time = make([][]float64, len(p.Kinds))
	for k := range in.time {
		in.time[k] = make([]float64, len(in.nodes))
	}
	for v := range p.Nodes {
		i := in.itemOf[v]
		in.size[i] += p.Nodes[v].Size
		for k, t := range p.Nodes[v].Time {
			in.time[k][i] += t
		}
	}
	in.makeNets()
	return in
}

func (in *instance) makeNets() {
	sinks := make([]map[int]bool, len(in.p.Nodes))
	for _, e := range in.p.Edges {
		if from, to := in.itemOf[e[0]], in.itemOf[e[1]]; from != to && in.p.Nodes[e[0]].Transfer > 0 {
			if sinks[e[0]] == nil {
				sinks[e[0]] = make(map[int]bool)
			}
			sinks[e[0]][to] = true
		}
	}
	in.touching = make([][]int, len(in.nodes))
	for v, items := range sinks {
		if len(items) == 0 {
			continue
		}
		n := net{in.p.Nodes[v].Transfer, in.itemOf[v], slices.Sorted(maps.Keys(items))}
		for _, i := range append([]int{n.source}, n.sinks...) {
			in.touching[i] = append(in.touching[i], len(in.nets))
		}
		in.nets = append(in.nets, n)
	}
}

// groups numbers the nodes by their groups alone.
func (p *Problem) groups() []int {
	join := make([]int, len(p.Nodes))
	for v := range p.Nodes {
		join[v] = p.Nodes[v].Group
	}
	return join
}

// places turns devices of items into devices of nodes.
func (in *instance) places(device []int32) []int {
	place := make([]int, len(in.itemOf))
	for v, i := range in.itemOf {
		place[v] = int(device[i])
	}
	return place
}

func (in *instance) everyKind() []bool {
	return slices.Repeat([]bool{true}, len(in.p.Kinds))
}
