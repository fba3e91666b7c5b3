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
// make many edges of few. w is the web of p.
func reduce(p *Problem, w *web) *reduced {
	in, out := make([]map[int]bool, len(p.Nodes)), make([]map[int]bool, len(p.Nodes))
	for v := range p.Nodes {
		in[v], out[v] = heads(w.in[v]), heads(w.out[v])
	}
	left := len(p.Nodes)
	gone := make([]bool, len(p.Nodes))
	for _, v := range w.order {
		if left == 1 || len(in[v])*len(out[v]) > fewEdges || !p.free(v, w) {
			continue
		}
		gone[v] = true
		left--
		for a := range in[v] {
			delete(out[a], v)
			maps.Copy(out[a], out[v])
		}
		for b := range out[v] {
			delete(in[b], v)
			maps.Copy(in[b], in[v])
		}
	}
	return p.without(gone, out)
}

// without leaves nodes out; out is what is read of each node that stays.
func (p *Problem) without(gone []bool, out []map[int]bool) *reduced {
	r := &reduced{Problem: Problem{Devices: p.Devices, Capacity: p.Capacity}}
	index := make([]int, len(p.Nodes))
	for v := range p.Nodes {
		if !gone[v] {
			index[v] = len(r.Nodes)
			r.Nodes, r.node = append(r.Nodes, p.Nodes[v]), append(r.node, v)
		}
	}
	for _, e := range p.Edges {
		if !gone[e.From] && !gone[e.To] {
			r.Edges = append(r.Edges, Edge{index[e.From], index[e.To], e.Send, e.Receive})
			delete(out[e.From], e.To)
		}
	}
	for _, v := range r.node {
		for _, to := range slices.Sorted(maps.Keys(out[v])) {
			r.Edges = append(r.Edges, Edge{From: index[v], To: index[to]})
		}
	}
	return r
}

func heads(arcs []arc) map[int]bool {
	nodes := make(map[int]bool, len(arcs))
	for _, a := range arcs {
		nodes[a.node] = true
	}
	return nodes
}

// free: the node's first free choice costs nothing, and no edge of it does.
func (p *Problem) free(v int, w *web) bool {
	for _, arcs := range [][]arc{w.in[v], w.out[v]} {
		for _, a := range arcs {
			if a.send+a.receive > 0 {
				return false
			}
		}
	}
	return p.freeChoice(v) >= 0
}

func (p *Problem) freeChoice(v int) int {
	return slices.IndexFunc(p.Nodes[v].Choices, func(c Choice) bool {
		return c.Time == 0 && (c.InFlight+c.Fixed == 0 || math.IsInf(p.Capacity, 1))
	})
}

// expand puts the nodes back: each where the last thing that it reads is.
func (r *reduced) expand(p *Problem, w *web, stage, choice []int) (whole, options []int) {
	whole, options = make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	kept := make([]bool, len(p.Nodes))
	for i, v := range r.node {
		whole[v], options[v], kept[v] = stage[i], choice[i], true
	}
	for _, v := range w.order {
		if kept[v] {
			continue
		}
		options[v] = p.freeChoice(v)
		for _, a := range w.in[v] {
			whole[v] = max(whole[v], whole[a.node])
		}
	}
	return whole, options
}
