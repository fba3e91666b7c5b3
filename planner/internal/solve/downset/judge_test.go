package downset

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// leastContiguous tries every assignment of groups to devices. An assignment is contiguous if an
// order of the devices respects every edge of the forward pass. For groups of backward nodes only,
// edges count in reverse.
func leastContiguous(problem *graph.Problem) float64 {
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
		if inSomeOrder(problem, place, forward) {
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

// inSomeOrder reports whether an order of the devices of a placement respects every ordering edge.
func inSomeOrder(problem *graph.Problem, place []int, forward map[int]bool) bool {
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
	// Remove devices without predecessors until none is left.
	for range next {
		first := notLedTo(next)
		if first < 0 {
			return false
		}
		next[first] = nil
	}
	return true
}

// notLedTo returns a remaining device that no other remaining one leads to; -1 if there is none.
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

// scored returns the value of an answer, which must agree with Score.
func scored(tb testing.TB, problem *graph.Problem, solution *graph.Solution, err error) float64 {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	if _, largest, err := problem.Score(solution.Place); err != nil || largest != solution.Value || solution.LowerBound > largest {
		tb.Fatalf("%v, scored %v (%v), bound %v", solution.Value, largest, err, solution.LowerBound)
	}
	return solution.Value
}

// judge checks an answer, its bound and its status against the least value.
func judge(tb testing.TB, seed uint64, problem *graph.Problem, solution *graph.Solution, err error, least float64, proof bool) {
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

// hostile returns problems that solvers often get wrong. Sizes fill a capacity exactly, but not in
// floating point, and times have all magnitudes or are all 0. Kinds have no devices, and some nodes
// run nowhere.
func hostile(random *rand.Rand) *graph.Problem {
	problem := &graph.Problem{}
	nodes := 1 + random.IntN(6)
	scale := []float64{1, 1, 1, 1e-12, 1e15, 5e-320}[random.IntN(6)]
	unit := []float64{1, 0.1, 0.3, 1e9}[random.IntN(4)]
	for k, left := 0, 4; k < 3; k++ {
		count := random.IntN(min(left, 3) + 1)
		left -= count
		problem.Kinds = append(problem.Kinds, graph.Kind{Name: fmt.Sprint("k", k), Count: count, Capacity: math.Inf(1), FreeTransfers: random.IntN(3) == 0})
		if random.IntN(2) == 0 {
			problem.Kinds[k].Capacity = float64(1+random.IntN(9)) * unit
		}
	}
	if problem.Devices() == 0 {
		problem.Kinds[random.IntN(3)].Count = 1 + random.IntN(3)
	}
	forward, idle := 1+random.IntN(nodes), random.IntN(3) == 0
	for vertex := range nodes {
		node := graph.Node{Name: fmt.Sprint("n", vertex), Backward: vertex >= forward, Group: 100 + vertex}
		if random.IntN(2) == 0 {
			node.Group = random.IntN(nodes + 1)
		}
		light := idle || random.IntN(3) == 0
		for range problem.Kinds {
			time := float64(random.IntN(8)) * []float64{1, 0.1, random.Float64(), 1e4}[random.IntN(4)]
			if light {
				time = 0
			}
			if random.IntN(12) == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time*scale)
		}
		node.Size = float64(random.IntN(4)) * unit
		node.Transfer = float64(random.IntN(5)) * []float64{0.5, random.Float64()}[random.IntN(2)] * scale
		problem.Nodes = append(problem.Nodes, node)
	}
	perm, dense := random.Perm(nodes), random.IntN(4)
	for i := range nodes {
		for j := range i {
			a, b := perm[j], perm[i]
			if random.IntN(4) < dense && (!problem.Nodes[a].Backward || problem.Nodes[b].Backward) {
				problem.Edges = append(problem.Edges, [2]int{a, b})
			}
		}
	}
	return problem
}

// nearChain returns a chain with some edges that skip nodes.
func nearChain(random *rand.Rand, nodes, skips int, kinds ...graph.Kind) *graph.Problem {
	problem := &graph.Problem{Kinds: kinds}
	for i := range nodes {
		node := graph.Node{Size: float64(1 + random.IntN(100)), Transfer: float64(random.IntN(20)) / 4, Group: i}
		for range kinds {
			node.Time = append(node.Time, float64(1+random.IntN(100))/10)
		}
		problem.Nodes = append(problem.Nodes, node)
		if i > 0 && random.IntN(20) > 0 {
			problem.Edges = append(problem.Edges, [2]int{i - 1, i})
		}
	}
	for range skips {
		a := random.IntN(nodes - 3)
		problem.Edges = append(problem.Edges, [2]int{a, a + 2 + random.IntN(min(50, nodes-a-2))})
	}
	return problem
}
