package graphtest

import (
	"errors"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

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

// InSomeOrder says whether a placement's devices can be put in an order that
// every ordering edge keeps.
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
	for range next {
		first := notLedTo(next)
		if first < 0 {
			return false
		}
		next[first] = nil
	}
	return true
}

// notLedTo is a device that is left, no other of which leads to it; -1: none.
func notLedTo(next []map[int]bool) int {
	for d := range next {
		led := next[d] == nil
		for o := range next {
			led = led || next[o][d]
		}
		if !led {
			return d
		}
	}
	return -1
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

// Scored is the value of an answer that Score agrees with.
func Scored(tb testing.TB, p *graph.Problem, s *graph.Solution, err error) float64 {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	if _, largest, err := p.Score(s.Place); err != nil || largest != s.Value || s.LowerBound > largest {
		tb.Fatalf("%v, scored %v (%v), bound %v", s.Value, largest, err, s.LowerBound)
	}
	return s.Value
}

// Judge holds an answer, and what it says of itself, to the truth.
func Judge(tb testing.TB, seed uint64, p *graph.Problem, s *graph.Solution, err error, least float64, proof bool) {
	tb.Helper()
	if err != nil {
		var none *graph.InfeasibleError
		if !errors.As(err, &none) || proof && !math.IsInf(least, 1) {
			tb.Errorf("seed %d: %v; %v is possible", seed, err, least)
		}
		return
	}
	_, largest, broken := p.Score(s.Place)
	if broken != nil || largest != s.Value || largest < least*(1-1e-9) {
		tb.Errorf("seed %d: %v, scored %v, %v; the least is %v", seed, s.Value, largest, broken, least)
	}
	if s.LowerBound > least*(1+1e-9) || s.LowerBound > largest || s.Optimal() && largest > least*(1+1e-8) || proof && !s.Optimal() {
		tb.Errorf("seed %d: %v, bound %v (%s), optimal %v; the least is %v", seed, largest, s.LowerBound, s.Bound, s.Optimal(), least)
	}
}
