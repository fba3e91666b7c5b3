package dags

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// between is the i-th of some counts from 50 to 600.
func between(random *rand.Rand, i, each int) int {
	part := (float64(i) + random.Float64()) / float64(each)
	return int(math.Round(50 * math.Pow(12, part)))
}

// costed draws every node's costs. Times, sizes and transfers spread as the
// logarithm of a normal variable does; some nodes are heavy, some hold nothing.
// Times and transfers are whole microseconds, given in milliseconds. No node is
// more than most of a device's share: else it alone would decide.
func (drawing *sketch) costed(line *Line) *graph.Problem {
	const most = 0.6
	problem := &graph.Problem{}
	limit := most * float64(drawing.count) / float64(line.Devices)
	spread := func(sigma float64) float64 {
		return math.Exp(sigma*drawing.random.NormFloat64() - sigma*sigma/2)
	}
	for node := range drawing.count {
		as := drawing.roles[node]
		time, size, transfer := as.time*spread(0.7), as.size*spread(1), as.transfer*spread(0.6)
		if drawing.random.IntN(30) == 0 {
			time *= 3 + 5*drawing.random.Float64()
		}
		switch drawing.random.IntN(50) {
		case 0:
			size *= 6 // an embedding
		case 1, 2, 3, 4, 5, 6, 7, 8:
			size = 0 // an activation function
		}
		problem.Nodes = append(problem.Nodes, graph.Node{
			Name: fmt.Sprintf("n%d", node), Group: node,
			Time:     []float64{math.Round(2000*min(time, limit)) / 1000},
			Size:     math.Round(min(size, limit) * (8 << 20)),
			Transfer: math.Round(2000*line.Transfers*transfer) / 1000,
		})
	}
	problem.Edges = drawing.edges
	return problem
}

// capacity is the line's, or a hundredth more than the least that a placement
// of its mode was found within: nodes laid in the devices largest first, or the
// best cuts of some linear extensions.
func (drawing *sketch) capacity(problem *graph.Problem, line *Line) int64 {
	sizes := make([]int64, len(problem.Nodes))
	total := int64(0)
	for node := range problem.Nodes {
		sizes[node] = int64(problem.Nodes[node].Size)
		total += sizes[node]
	}
	found := int64(math.MaxInt64)
	if line.Mode == "any" {
		found = largestFirst(slices.Clone(sizes), line.Devices)
	} else {
		const extensions = 64
		for range extensions {
			laid := make([]int64, 0, len(sizes))
			for _, node := range drawing.extension() {
				laid = append(laid, sizes[node])
			}
			found = min(found, leastCuts(laid, line.Devices))
		}
	}
	return max(int64(line.Capacity*float64(total)/float64(line.Devices)), found+found/100+1)
}

// largestFirst is the fullest device where each item, the largest first, goes
// to the emptiest.
func largestFirst(sizes []int64, devices int) int64 {
	held := make([]int64, devices)
	slices.Sort(sizes)
	for _, size := range slices.Backward(sizes) {
		emptiest := slices.Index(held, slices.Min(held))
		held[emptiest] += size
	}
	return slices.Max(held)
}

// leastCuts is the least capacity at which stretches of a row fill the devices:
// bisection, as a longer stretch is never smaller.
func leastCuts(row []int64, devices int) int64 {
	low, high := slices.Max(row), int64(0)
	for _, size := range row {
		high += size
	}
	for low < high {
		middle := low + (high-low)/2
		used, held := 1, int64(0)
		for _, size := range row {
			if held+size > middle {
				used, held = used+1, 0
			}
			held += size
		}
		if used <= devices {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// extension is a linear extension: of the nodes that may be next, any, or for
// half of them the one that became so last.
func (drawing *sketch) extension() []int {
	waits, after := make([]int, drawing.count), make([][]int, drawing.count)
	for _, edge := range drawing.edges {
		waits[edge[1]]++
		after[edge[0]] = append(after[edge[0]], edge[1])
	}
	var ready, order []int
	for node, count := range waits {
		if count == 0 {
			ready = append(ready, node)
		}
	}
	deep := drawing.random.IntN(2) == 0
	for len(ready) > 0 {
		next := len(ready) - 1
		if !deep || drawing.random.IntN(16) == 0 {
			next = drawing.random.IntN(len(ready))
		}
		node := ready[next]
		ready = slices.Delete(ready, next, next+1)
		order = append(order, node)
		for _, to := range after[node] {
			waits[to]--
			if waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return order
}
