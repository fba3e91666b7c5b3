package graph_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// least returns the least value of all assignments, by trying all.
func least(problem *graph.Problem) float64 {
	place := make([]int, len(problem.Nodes))
	first := make(map[int]int)
	best := math.Inf(1)
	var try func(node int)
	try = func(node int) {
		if node == len(place) {
			if _, largest, err := problem.Score(place); err == nil {
				best = min(best, largest)
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
	return best
}

// small returns a problem small enough to try every assignment.
func small(random *rand.Rand) *graph.Problem {
	count := 2 + random.IntN(7)
	problem := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 1 + random.IntN(3), Capacity: math.Inf(1)}}}
	if random.IntN(2) == 0 {
		problem.Kinds[0].Capacity = 8 + 20*random.Float64()
	}
	if random.IntN(2) == 0 {
		problem.Kinds = append(problem.Kinds, graph.Kind{Name: "cpu", Count: random.IntN(3), Capacity: math.Inf(1), FreeTransfers: random.IntN(3) > 0})
	}
	for vertex := range count {
		node := graph.Node{Name: fmt.Sprint("n", vertex), Size: 5 * random.Float64(), Group: vertex, Transfer: float64(random.IntN(3)) * 4 * random.Float64()}
		for k := range problem.Kinds {
			time := float64(random.IntN(4)) * random.Float64() * float64(1+3*k)
			if random.IntN(12) == 0 {
				time = math.Inf(1)
			}
			node.Time = append(node.Time, time)
		}
		if vertex > 0 && random.IntN(5) == 0 {
			node.Group = random.IntN(vertex)
		}
		for before := range vertex {
			if random.IntN(2) == 0 && vertex-before < 4 {
				problem.Edges = append(problem.Edges, [2]int{before, vertex})
			}
		}
		problem.Nodes = append(problem.Nodes, node)
	}
	return problem
}

// whole returns a random problem in whole numbers. So sizes are often equal or fill capacities
// exactly, and ties are common.
func whole(random *rand.Rand) *graph.Problem {
	problem := small(random)
	for k := range problem.Kinds {
		if capacity := problem.Kinds[k].Capacity; !math.IsInf(capacity, 1) {
			problem.Kinds[k].Capacity = float64(2 + random.IntN(9))
		}
	}
	for vertex := range problem.Nodes {
		node := &problem.Nodes[vertex]
		node.Size, node.Transfer = float64(random.IntN(5)), float64(random.IntN(4))
		for k := range node.Time {
			node.Time[k] = math.Round(4 * node.Time[k])
		}
	}
	return problem
}
