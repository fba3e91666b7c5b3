package graphtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
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

// Least tries every assignment.
func Least(p *graph.Problem) float64 {
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

// LeastContiguous tries every assignment of groups to devices. Contiguous means
// that the devices can be put in an order that every edge of the forward pass
// keeps; groups of backward nodes alone are ordered by their edges turned
// round.
func LeastContiguous(p *graph.Problem) float64 {
	forward := make(map[int]bool)
	var groups []int
	at := make(map[int]int)
	for _, n := range p.Nodes {
		if _, known := at[n.Group]; !known {
			at[n.Group] = len(groups)
			groups = append(groups, n.Group)
		}
		forward[n.Group] = forward[n.Group] || !n.Backward
	}
	device := make([]int, len(groups))
	place := make([]int, len(p.Nodes))
	best := math.Inf(1)
	for {
		for v := range place {
			place[v] = device[at[p.Nodes[v].Group]]
		}
		if InSomeOrder(p, place, forward) {
			if _, largest, err := p.Score(place); err == nil {
				best = min(best, largest)
			}
		}
		i := 0
		for ; i < len(device) && device[i] == p.Devices()-1; i++ {
			device[i] = 0
		}
		if i == len(device) {
			return best
		}
		device[i]++
	}
}

func InSomeOrder(p *graph.Problem, place []int, forward map[int]bool) bool {
	next := make([]map[int]bool, p.Devices())
	for d := range next {
		next[d] = make(map[int]bool)
	}
	for _, e := range p.Edges {
		a, b := &p.Nodes[e[0]], &p.Nodes[e[1]]
		from, to := place[e[0]], place[e[1]]
		if a.Backward && b.Backward && (!forward[a.Group] || !forward[b.Group]) {
			from, to = to, from
		} else if a.Backward || b.Backward {
			continue
		}
		if from != to {
			next[from][to] = true
		}
	}
	// Take away devices that nothing leads to, until none is left.
	for left := len(next); left > 0; left-- {
		at := -1
		for d := range next {
			led := next[d] == nil
			for o := range next {
				led = led || next[o][d]
			}
			if !led {
				at = d
			}
		}
		if at < 0 {
			return false
		}
		next[at] = nil
	}
	return true
}

// EachSet calls f with every set of the items.
func EachSet(items int, f func(has func(int) bool)) {
	for set := range uint(1) << items {
		f(func(i int) bool { return set>>uint(i)&1 != 0 })
	}
}

// LoadOf is what a device of a kind has to do for a set of items.
func LoadOf(l *netlist.Netlist, kind int, has func(int) bool) float64 {
	load := 0.
	for i := range l.Nodes {
		if has(i) {
			load += l.Time[kind][i]
		}
	}
	for _, w := range l.Wires {
		in := 0
		for _, m := range w.Members {
			if has(int(m)) {
				in++
			}
		}
		if in > 0 && in < len(w.Members) && !l.Free[kind] {
			load += w.Cost
		}
	}
	return load
}

func Scored(t testing.TB, p *graph.Problem, s *graph.Solution, err error) float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if _, largest, err := p.Score(s.Place); err != nil || largest != s.Value || s.LowerBound > largest {
		t.Fatalf("%v, scored %v (%v), bound %v", s.Value, largest, err, s.LowerBound)
	}
	return s.Value
}

// Judge holds an answer, and what it says of itself, to the truth.
func Judge(t testing.TB, seed uint64, p *graph.Problem, s *graph.Solution, err error, least float64, proof bool) {
	t.Helper()
	if err != nil {
		var none *graph.InfeasibleError
		if !errors.As(err, &none) || proof && !math.IsInf(least, 1) {
			t.Errorf("seed %d: %v; %v is possible", seed, err, least)
		}
		return
	}
	_, largest, broken := p.Score(s.Place)
	if broken != nil || largest != s.Value || largest < least*(1-1e-9) {
		t.Errorf("seed %d: %v, scored %v, %v; the least is %v", seed, s.Value, largest, broken, least)
	}
	if s.LowerBound > least*(1+1e-9) || s.LowerBound > largest || s.Optimal() && largest > least*(1+1e-8) || proof && !s.Optimal() {
		t.Errorf("seed %d: %v, bound %v (%s), optimal %v; the least is %v", seed, largest, s.LowerBound, s.Bound, s.Optimal(), least)
	}
}
