package partition

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// randomProblem is small enough to try every assignment.
func randomProblem(r *rand.Rand) *Problem {
	n := 2 + r.IntN(7)
	p := &Problem{Kinds: []Kind{{Name: "gpu", Count: 1 + r.IntN(3), Capacity: math.Inf(1)}}}
	if r.IntN(2) == 0 {
		p.Kinds[0].Capacity = 8 + 20*r.Float64()
	}
	if r.IntN(2) == 0 {
		p.Kinds = append(p.Kinds, Kind{Name: "cpu", Count: r.IntN(3), Capacity: math.Inf(1), FreeTransfers: r.IntN(3) > 0})
	}
	for v := range n {
		node := Node{Name: fmt.Sprint("n", v), Size: 5 * r.Float64(), Group: v, Transfer: float64(r.IntN(3)) * 4 * r.Float64()}
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

// leastOf tries every assignment.
func leastOf(p *Problem) float64 {
	place := make([]int, len(p.Nodes))
	first := make(map[int]int)
	least := math.Inf(1)
	var try func(v int)
	try = func(v int) {
		if v == len(place) {
			if _, largest, err := p.Score(place); err == nil {
				least = min(least, largest)
			}
			return
		}
		if u, ok := first[p.Nodes[v].Group]; ok {
			place[v] = place[u]
			try(v + 1)
			return
		}
		first[p.Nodes[v].Group] = v
		for d := range p.Devices() {
			place[v] = d
			try(v + 1)
		}
		delete(first, p.Nodes[v].Group)
	}
	try(0)
	return least
}
