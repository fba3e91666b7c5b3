package graphtest

import (
	"errors"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Least tries every assignment.
func Least(problem *graph.Problem) float64 {
	place := make([]int, len(problem.Nodes))
	first := make(map[int]int)
	least := math.Inf(1)
	var try func(node int)
	try = func(node int) {
		if node == len(place) {
			if _, largest, err := problem.Score(place); err == nil {
				least = min(least, largest)
			}
			return
		}
		if other, ok := first[problem.Nodes[node].Group]; ok {
			place[node] = place[other]
			try(node + 1)
			return
		}
		first[problem.Nodes[node].Group] = node
		for device := range problem.Devices() {
			place[node] = device
			try(node + 1)
		}
		delete(first, problem.Nodes[node].Group)
	}
	try(0)
	return least
}

// LeastContiguous tries every assignment of groups to devices. Contiguous means
// that the devices can be put in an order that every edge of the forward pass
// keeps; groups of backward nodes alone are ordered by their edges turned
// round.
func LeastContiguous(problem *graph.Problem) float64 {
	forward := make(map[int]bool)
	var groups []int
	at := make(map[int]int)
	for _, node := range problem.Nodes {
		if _, known := at[node.Group]; !known {
			at[node.Group] = len(groups)
			groups = append(groups, node.Group)
		}
		forward[node.Group] = forward[node.Group] || !node.Backward
	}
	device := make([]int, len(groups))
	place := make([]int, len(problem.Nodes))
	best := math.Inf(1)
	for {
		for node := range place {
			place[node] = device[at[problem.Nodes[node].Group]]
		}
		if InSomeOrder(problem, place, forward) {
			if _, largest, err := problem.Score(place); err == nil {
				best = min(best, largest)
			}
		}
		i := 0
		for ; i < len(device) && device[i] == problem.Devices()-1; i++ {
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
func InSomeOrder(problem *graph.Problem, place []int, forward map[int]bool) bool {
	next := make([]map[int]bool, problem.Devices())
	for device := range next {
		next[device] = make(map[int]bool)
	}
	for _, edge := range problem.Edges {
		node, b := &problem.Nodes[edge[0]], &problem.Nodes[edge[1]]
		from, to := place[edge[0]], place[edge[1]]
		if node.Backward && b.Backward && (!forward[node.Group] || !forward[b.Group]) {
			from, to = to, from
		} else if node.Backward || b.Backward {
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
	for device := range next {
		led := next[device] == nil
		for o := range next {
			led = led || next[o][device]
		}
		if !led {
			return device
		}
	}
	return -1
}

// Scored is the value of an answer that Score agrees with.
func Scored(tb testing.TB, problem *graph.Problem, solution *graph.Solution, err error) float64 {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	if _, largest, err := problem.Score(solution.Place); err != nil || largest != solution.Value || solution.LowerBound > largest {
		tb.Fatalf("%v, scored %v (%v), bound %v", solution.Value, largest, err, solution.LowerBound)
	}
	return solution.Value
}

// Judge holds an answer, and what it says of itself, to the truth.
func Judge(tb testing.TB, seed uint64, problem *graph.Problem, solution *graph.Solution, err error, least float64, proof bool) {
	tb.Helper()
	if err != nil {
		var none *graph.InfeasibleError
		if !errors.As(err, &none) || proof && !math.IsInf(least, 1) {
			tb.Errorf("seed %d: %v; %v is possible", seed, err, least)
		}
		return
	}
	_, largest, broken := problem.Score(solution.Place)
	if broken != nil || largest != solution.Value || largest < least*(1-1e-9) {
		tb.Errorf("seed %d: %v, scored %v, %v; the least is %v", seed, solution.Value, largest, broken, least)
	}
	if solution.LowerBound > least*(1+1e-9) || solution.LowerBound > largest || solution.Optimal() && largest > least*(1+1e-8) || proof && !solution.Optimal() {
		tb.Errorf("seed %d: %v, bound %v (%s), optimal %v; the least is %v", seed, largest, solution.LowerBound, solution.Bound, solution.Optimal(), least)
	}
}
