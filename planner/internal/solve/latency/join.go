package latency

import (
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// joins are three ways to take nodes together. Groups that read each other in
// a circle need not share a call: on the CPUs each of their nodes runs for
// itself, and what lies between them may be in a call. But a group that is in
// a call has all of its circle beside it, if the call is to be contiguous.
type joins struct {
	// circles are whole: together in a call, or all on the CPUs. Between them
	// there is an order, that lines need.
	circles []int
	// groups are what the rules keep together.
	groups []int
	// loose has an order as well and keeps apart what the rules may: the nodes
	// of circles of several groups, and, where an accelerator is called several
	// times, of all groups. What no assignment of these is below, none is.
	loose []int
	// several: there are circles of more than a group.
	several bool
}

func (problem *Problem) joins() joins {
	groups := simple.NewDirectedGraph()
	for node := range problem.Nodes {
		if group := int64(problem.Nodes[node].Group); groups.Node(group) == nil {
			groups.AddNode(simple.Node(group))
		}
	}
	for _, edge := range problem.Edges {
		if from, to := problem.Nodes[edge[0]].Group, problem.Nodes[edge[1]].Group; from != to {
			groups.SetEdge(groups.NewEdge(simple.Node(from), simple.Node(to)))
		}
	}
	out := joins{groups: problem.Groups()}
	circleOf, size := make(map[int]int), make(map[int]int)
	for i, circle := range topo.TarjanSCC(groups) {
		for _, group := range circle {
			circleOf[int(group.ID())] = i
		}
		size[i] = len(circle)
	}
	for node, group := range out.groups {
		circle := circleOf[group]
		out.circles = append(out.circles, circle)
		out.several = out.several || size[circle] > 1
		if problem.calls() > 1 || size[circle] > 1 {
			circle = len(size) + node
		}
		out.loose = append(out.loose, circle)
	}
	return out
}
