package graph

import (
	"maps"
	"slices"
)

// Instance is a problem in the form that the solvers work on: groups are
// items, and what an original node sends is a net.
type Instance struct {
	Problem *Problem
	// Nodes are an item's nodes; ItemOf is a node's item.
	Nodes  [][]int
	ItemOf []int
	// Time is indexed by kind, then item.
	Time [][]float64
	Size []float64
	Nets []Net
	// Touching are the nets that an item sends or reads.
	Touching [][]int
}

// Net is one node's output that other items read. A device pays its cost once
// where the net crosses the device's edge: it holds the source and not all
// sinks, or some sink and not the source.
type Net struct {
	Cost   float64
	Source int
	Sinks  []int // items, ascending, without the source
}

// NewInstance contracts the nodes that join maps to the same number.
func NewInstance(p *Problem, join []int) *Instance {
	in := &Instance{Problem: p, ItemOf: make([]int, len(p.Nodes))}
	seen := make(map[int]int)
	for v, g := range join {
		i, ok := seen[g]
		if !ok {
			i = len(in.Nodes)
			seen[g] = i
			in.Nodes = append(in.Nodes, nil)
		}
		in.ItemOf[v] = i
		in.Nodes[i] = append(in.Nodes[i], v)
	}
	in.Size = make([]float64, len(in.Nodes))
	in.Time = make([][]float64, len(p.Kinds))
	for k := range in.Time {
		in.Time[k] = make([]float64, len(in.Nodes))
	}
	for v := range p.Nodes {
		i := in.ItemOf[v]
		in.Size[i] += p.Nodes[v].Size
		for k, t := range p.Nodes[v].Time {
			in.Time[k][i] += t
		}
	}
	in.makeNets()
	return in
}

func (in *Instance) makeNets() {
	sinks := make([]map[int]bool, len(in.Problem.Nodes))
	for _, e := range in.Problem.Edges {
		if from, to := in.ItemOf[e[0]], in.ItemOf[e[1]]; from != to && in.Problem.Nodes[e[0]].Transfer > 0 {
			if sinks[e[0]] == nil {
				sinks[e[0]] = make(map[int]bool)
			}
			sinks[e[0]][to] = true
		}
	}
	in.Touching = make([][]int, len(in.Nodes))
	for v, items := range sinks {
		if len(items) == 0 {
			continue
		}
		n := Net{in.Problem.Nodes[v].Transfer, in.ItemOf[v], slices.Sorted(maps.Keys(items))}
		for _, i := range append([]int{n.Source}, n.Sinks...) {
			in.Touching[i] = append(in.Touching[i], len(in.Nets))
		}
		in.Nets = append(in.Nets, n)
	}
}

// Groups numbers the nodes by their groups alone.
func (p *Problem) Groups() []int {
	join := make([]int, len(p.Nodes))
	for v := range p.Nodes {
		join[v] = p.Nodes[v].Group
	}
	return join
}

// Places turns devices of items into devices of nodes.
func (in *Instance) Places(device []int32) []int {
	place := make([]int, len(in.ItemOf))
	for v, i := range in.ItemOf {
		place[v] = int(device[i])
	}
	return place
}

func (in *Instance) EveryKind() []bool {
	return slices.Repeat([]bool{true}, len(in.Problem.Kinds))
}
