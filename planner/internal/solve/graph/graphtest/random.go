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
func Random(random *rand.Rand) *graph.Problem {
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

// Whole is a random problem in whole numbers, so that sizes are equal
// to each other and fill capacities exactly, and ties are common.
func Whole(random *rand.Rand) *graph.Problem {
	problem := Random(random)
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

// Hostile has what solvers are easily wrong about: sizes that fill a
// capacity on paper and not in floating point, times of all magnitudes, kinds
// without devices, nodes that run nowhere, all times 0.
func Hostile(random *rand.Rand) *graph.Problem {
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

// NearChain is a chain with some edges that skip ahead.
func NearChain(random *rand.Rand, nodes, skips int, kinds ...graph.Kind) *graph.Problem {
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
