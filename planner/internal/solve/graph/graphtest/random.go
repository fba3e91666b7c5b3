// Package graphtest draws small graph problems and judges answers to them by
// trying every assignment, apart from the solvers.
package graphtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Random is small enough to try every assignment.
func Random(r *rand.Rand) *graph.Problem {
	n := 2 + r.IntN(7)
	p := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 1 + r.IntN(3), Capacity: math.Inf(1)}}}
	if r.IntN(2) == 0 {
		p.Kinds[0].Capacity = 8 + 20*r.Float64()
	}
	if r.IntN(2) == 0 {
		p.Kinds = append(p.Kinds, graph.Kind{Name: "cpu", Count: r.IntN(3), Capacity: math.Inf(1), FreeTransfers: r.IntN(3) > 0})
	}
	for v := range n {
		node := graph.Node{Name: fmt.Sprint("n", v), Size: 5 * r.Float64(), Group: v, Transfer: float64(r.IntN(3)) * 4 * r.Float64()}
		for k := range p.Kinds {
			t := float64(r.IntN(4)) * r.Float64() * float64(1+3*k)
			if r.IntN(12) == 0 {
				t = math.Inf(1)
			}
			node.Time = append(node.Time, t)
		}
		if v > 0 && r.IntN(5) == 0 {
			node.Group = r.IntN(v)
		}
		for u := range v {
			if r.IntN(2) == 0 && v-u < 4 {
				p.Edges = append(p.Edges, [2]int{u, v})
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	return p
}

// Whole is a random problem in whole numbers, so that sizes are equal
// to each other and fill capacities exactly, and ties are common.
func Whole(r *rand.Rand) *graph.Problem {
	p := Random(r)
	for k := range p.Kinds {
		if c := p.Kinds[k].Capacity; !math.IsInf(c, 1) {
			p.Kinds[k].Capacity = float64(2 + r.IntN(9))
		}
	}
	for v := range p.Nodes {
		n := &p.Nodes[v]
		n.Size, n.Transfer = float64(r.IntN(5)), float64(r.IntN(4))
		for k := range n.Time {
			n.Time[k] = math.Round(4 * n.Time[k])
		}
	}
	return p
}

// Hostile has what solvers are easily wrong about: sizes that fill a
// capacity on paper and not in floating point, times of all magnitudes, kinds
// without devices, nodes that run nowhere, all times 0.
func Hostile(r *rand.Rand) *graph.Problem {
	p := &graph.Problem{}
	n := 1 + r.IntN(6)
	scale := []float64{1, 1, 1, 1e-12, 1e15, 5e-320}[r.IntN(6)]
	unit := []float64{1, 0.1, 0.3, 1e9}[r.IntN(4)]
	for k, left := 0, 4; k < 3; k++ {
		count := r.IntN(min(left, 3) + 1)
		left -= count
		p.Kinds = append(p.Kinds, graph.Kind{Name: fmt.Sprint("k", k), Count: count, Capacity: math.Inf(1), FreeTransfers: r.IntN(3) == 0})
		if r.IntN(2) == 0 {
			p.Kinds[k].Capacity = float64(1+r.IntN(9)) * unit
		}
	}
	if p.Devices() == 0 {
		p.Kinds[r.IntN(3)].Count = 1 + r.IntN(3)
	}
	forward, idle := 1+r.IntN(n), r.IntN(3) == 0
	for v := range n {
		node := graph.Node{Name: fmt.Sprint("n", v), Backward: v >= forward, Group: 100 + v}
		if r.IntN(2) == 0 {
			node.Group = r.IntN(n + 1)
		}
		light := idle || r.IntN(3) == 0
		for range p.Kinds {
			time := float64(r.IntN(8)) * []float64{1, 0.1, r.Float64(), 1e4}[r.IntN(4)]
			if light {
				time = 0
			}
			if r.IntN(12) == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time*scale)
		}
		node.Size = float64(r.IntN(4)) * unit
		node.Transfer = float64(r.IntN(5)) * []float64{0.5, r.Float64()}[r.IntN(2)] * scale
		p.Nodes = append(p.Nodes, node)
	}
	perm, dense := r.Perm(n), r.IntN(4)
	for i := range n {
		for j := range i {
			a, b := perm[j], perm[i]
			if r.IntN(4) < dense && (!p.Nodes[a].Backward || p.Nodes[b].Backward) {
				p.Edges = append(p.Edges, [2]int{a, b})
			}
		}
	}
	return p
}

// NearChain is a chain with some edges that skip ahead.
func NearChain(r *rand.Rand, nodes, skips int, kinds ...graph.Kind) *graph.Problem {
	p := &graph.Problem{Kinds: kinds}
	for i := range nodes {
		n := graph.Node{Size: float64(1 + r.IntN(100)), Transfer: float64(r.IntN(20)) / 4, Group: i}
		for range kinds {
			n.Time = append(n.Time, float64(1+r.IntN(100))/10)
		}
		p.Nodes = append(p.Nodes, n)
		if i > 0 && r.IntN(20) > 0 {
			p.Edges = append(p.Edges, [2]int{i - 1, i})
		}
	}
	for range skips {
		a := r.IntN(nodes - 3)
		p.Edges = append(p.Edges, [2]int{a, a + 2 + r.IntN(min(50, nodes-a-2))})
	}
	return p
}
