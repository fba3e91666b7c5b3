package latency

import (
	"slices"

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
	// loose has an order as well, in which a unit that leads to another does so
	// by nodes that read each other, whatever runs where: on the CPUs a group's
	// nodes lead only where each leads by itself. It keeps apart the nodes of
	// other groups, of circles of several, and, where an accelerator is called
	// several times, of all. What no assignment of these is below, none is.
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
	for _, group := range out.groups {
		circle := circleOf[group]
		out.circles = append(out.circles, circle)
		out.several = out.several || size[circle] > 1
	}
	through := problem.through(out.groups)
	for node, circle := range out.circles {
		if problem.calls() > 1 || size[circle] > 1 || !through[out.groups[node]] {
			circle = len(size) + node
		}
		out.loose = append(out.loose, circle)
	}
	return out
}

// mostReach bounds the nodes of which it is listed which lead to which: a bit
// for every two.
const mostReach = 40_000

// through says of each group whether what leads to it leads through it: every
// node that reads another group's leads to every node that another group reads.
func (problem *Problem) through(groups []int) map[int]bool {
	out := make(map[int]bool)
	members := make(map[int][]int)
	for node, group := range groups {
		members[group] = append(members[group], node)
	}
	in := &instance{problem: problem, cpu: -1}
	in.edges()
	var reach []bits
	for group, nodes := range members {
		if out[group] = len(nodes) == 1; out[group] || len(groups) > mostReach {
			continue
		}
		if reach == nil {
			reach = in.reach()
		}
		out[group] = in.leadsThrough(groups, nodes, reach)
	}
	return out
}

func (in *instance) leadsThrough(groups, nodes []int, reach []bits) bool {
	others := func(list []int32) bool {
		return slices.ContainsFunc(list, func(other int32) bool { return groups[other] != groups[nodes[0]] })
	}
	for _, enter := range nodes {
		if !others(in.reads[enter]) {
			continue
		}
		for _, exit := range nodes {
			if exit != enter && others(in.readBy[exit]) && !reach[enter].has(exit) {
				return false
			}
		}
	}
	return true
}

// bits are a set of nodes.
type bits []uint64

func (set bits) has(node int) bool { return set[node/64]>>(node%64)&1 == 1 }

// reach is, of each node, what it leads to.
func (in *instance) reach() []bits {
	out := make([]bits, len(in.reads))
	for _, node := range slices.Backward(in.sorted()) {
		set := make(bits, (len(out)+63)/64)
		for _, reader := range in.readBy[node] {
			set[reader/64] |= 1 << (reader % 64)
			for i, word := range out[reader] {
				set[i] |= word
			}
		}
		out[node] = set
	}
	return out
}
