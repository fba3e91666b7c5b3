package graph

import (
	"slices"
)

// Instance is a problem in the solvers' form: groups are items, and a node's output is a net.
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

// Net is one node's output that other items read. A device pays its cost once if the net crosses
// the device's edge. It then has the source and not all sinks, or some sink and not the source.
type Net struct {
	Cost   float64
	Source int
	Sinks  []int // items, ascending, without the source
}

// NewInstance joins the nodes that join maps to the same number into one item.
func NewInstance(problem *Problem, join []int) *Instance {
	in := &Instance{Problem: problem, ItemOf: make([]int, len(problem.Nodes))}
	seen := make(map[int]int)
	for node, group := range join {
		i, ok := seen[group]
		if !ok {
			i = len(in.Nodes)
			seen[group] = i
			in.Nodes = append(in.Nodes, nil)
		}
		in.ItemOf[node] = i
		in.Nodes[i] = append(in.Nodes[i], node)
	}
	in.Size = make([]float64, len(in.Nodes))
	in.Time = make([][]float64, len(problem.Kinds))
	for kind := range in.Time {
		in.Time[kind] = make([]float64, len(in.Nodes))
	}
	for node := range problem.Nodes {
		i := in.ItemOf[node]
		in.Size[i] += problem.Nodes[node].Size
		for kind, time := range problem.Nodes[node].Time {
			in.Time[kind][i] += time
		}
	}
	in.makeNets()
	return in
}

func (in *Instance) makeNets() {
	sinks := make([][]int, len(in.Problem.Nodes))
	for _, edge := range in.Problem.Edges {
		if from, to := in.ItemOf[edge[0]], in.ItemOf[edge[1]]; from != to && in.Problem.Nodes[edge[0]].Transfer > 0 {
			sinks[edge[0]] = append(sinks[edge[0]], to)
		}
	}
	in.Touching = make([][]int, len(in.Nodes))
	for node, items := range sinks {
		if len(items) == 0 {
			continue
		}
		slices.Sort(items)
		net := Net{in.Problem.Nodes[node].Transfer, in.ItemOf[node], slices.Compact(items)}
		in.Touching[net.Source] = append(in.Touching[net.Source], len(in.Nets))
		for _, i := range net.Sinks {
			in.Touching[i] = append(in.Touching[i], len(in.Nets))
		}
		in.Nets = append(in.Nets, net)
	}
}

// Groups returns the group of each node.
func (problem *Problem) Groups() []int {
	join := make([]int, len(problem.Nodes))
	for node := range problem.Nodes {
		join[node] = problem.Nodes[node].Group
	}
	return join
}

// Places converts devices of items to devices of nodes.
func (in *Instance) Places(device []int32) []int {
	place := make([]int, len(in.ItemOf))
	for node, i := range in.ItemOf {
		place[node] = int(device[i])
	}
	return place
}

// EveryKind returns the set of all kinds.
func (in *Instance) EveryKind() []bool {
	return slices.Repeat([]bool{true}, len(in.Problem.Kinds))
}
