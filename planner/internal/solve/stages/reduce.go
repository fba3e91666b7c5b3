package stages

import (
	"maps"
	"math"
	"slices"
)

// reduced is a problem without the nodes that cost nothing: no time, no
// memory, no transfers. What orders the others through them stays, as edges.
type reduced struct {
	Problem
	node []int // the node in the whole problem
}

// fewEdges bounds the edges that take a node's place.
const fewEdges = 64

// reduce takes every such node out, as long as that leaves a node and does not
// make many edges of few. network is the problem's web.
func reduce(problem *Problem, network *web) *reduced {
	in, out := make([]map[int]bool, len(problem.Nodes)), make([]map[int]bool, len(problem.Nodes))
	for node := range problem.Nodes {
		in[node], out[node] = heads(network.in[node]), heads(network.out[node])
	}
	left := len(problem.Nodes)
	gone := make([]bool, len(problem.Nodes))
	for _, node := range network.Order {
		if left == 1 || len(in[node])*len(out[node]) > fewEdges || !problem.free(node, network) {
			continue
		}
		gone[node] = true
		left--
		for a := range in[node] {
			delete(out[a], node)
			maps.Copy(out[a], out[node])
		}
		for b := range out[node] {
			delete(in[b], node)
			maps.Copy(in[b], in[node])
		}
	}
	return problem.without(gone, out)
}

// without leaves nodes out; out is what is read of each node that stays.
func (problem *Problem) without(gone []bool, out []map[int]bool) *reduced {
	smaller := &reduced{Problem: Problem{Devices: problem.Devices, Capacity: problem.Capacity}}
	index := make([]int, len(problem.Nodes))
	for node := range problem.Nodes {
		if !gone[node] {
			index[node] = len(smaller.Nodes)
			smaller.Nodes, smaller.node = append(smaller.Nodes, problem.Nodes[node]), append(smaller.node, node)
		}
	}
	for _, edge := range problem.Edges {
		if !gone[edge.From] && !gone[edge.To] {
			smaller.Edges = append(smaller.Edges, Edge{index[edge.From], index[edge.To], edge.Send, edge.Receive})
			delete(out[edge.From], edge.To)
		}
	}
	for _, node := range smaller.node {
		for _, to := range slices.Sorted(maps.Keys(out[node])) {
			smaller.Edges = append(smaller.Edges, Edge{From: index[node], To: index[to]})
		}
	}
	return smaller
}

func heads(arcs []arc) map[int]bool {
	nodes := make(map[int]bool, len(arcs))
	for _, edge := range arcs {
		nodes[edge.node] = true
	}
	return nodes
}

// free: the node's first free choice costs nothing, and no edge of it does.
func (problem *Problem) free(node int, network *web) bool {
	for _, arcs := range [][]arc{network.in[node], network.out[node]} {
		for _, edge := range arcs {
			if edge.send+edge.receive > 0 {
				return false
			}
		}
	}
	return problem.freeChoice(node) >= 0
}

func (problem *Problem) freeChoice(node int) int {
	return slices.IndexFunc(problem.Nodes[node].Choices, func(choice Choice) bool {
		return choice.Time == 0 && (choice.InFlight+choice.Fixed == 0 || math.IsInf(problem.Capacity, 1))
	})
}

// expand puts the nodes back: each where the last thing that it reads is.
func (smaller *reduced) expand(problem *Problem, network *web, stage, choice []int) (whole, options []int) {
	whole, options = make([]int, len(problem.Nodes)), make([]int, len(problem.Nodes))
	kept := make([]bool, len(problem.Nodes))
	for i, node := range smaller.node {
		whole[node], options[node], kept[node] = stage[i], choice[i], true
	}
	for _, node := range network.Order {
		if kept[node] {
			continue
		}
		options[node] = problem.freeChoice(node)
		for _, edge := range network.in[node] {
			whole[node] = max(whole[node], whole[edge.node])
		}
	}
	return whole, options
}
