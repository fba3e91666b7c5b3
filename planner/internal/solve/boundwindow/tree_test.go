package boundwindow_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// drawn is a problem of up to eight nodes on two to four devices of one kind,
// its neighbours, and its least largest load.
func drawn(random *rand.Rand) (problem *graph.Problem, before, after [][]int, least float64) {
	problem = graphtest.Whole(random)
	problem.Kinds = problem.Kinds[:1]
	problem.Kinds[0].Count = 2 + random.IntN(2)
	everything := make(map[int]bool)
	for node := range problem.Nodes {
		of := &problem.Nodes[node]
		of.Group, of.Time = node, of.Time[:1]
		if math.IsInf(of.Time[0], 1) {
			of.Time[0] = 3
		}
		everything[node] = true
	}
	before, after = make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
	}
	return problem, before, after, graphtest.LeastContiguous(problem)
}

// TestTree: whatever the limit, no bound is above the least largest load of all
// placements there are, and where the limit is above it the tree ends with it.
func TestTree(t *testing.T) {
	t.Parallel()
	tried, divided := 0, 0
	for seed := range uint64(1500) {
		problem, before, after, least := drawn(rand.New(rand.NewPCG(seed, 41)))
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		tried++
		for _, limit := range []float64{0.7 * least, least, 1.3 * least} {
			tree := boundwindow.NewTree(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after, limit)
			found := math.Inf(1)
			tree.Found = func(stage []int) {
				if _, largest, err := problem.Score(stage); err == nil && largest < found {
					found = largest
					tree.Lower(found * (1 - 1e-9))
				}
			}
			steps := 0
			for ; !tree.Done(); steps++ {
				tree.Step(context.Background())
				if tree.Bound() > least*(1+1e-9) {
					t.Fatalf("seed %d: within %v nothing is below %v, and %v is possible", seed, limit, tree.Bound(), least)
				}
			}
			if limit > least && math.Abs(found-least) > 1e-9*least {
				t.Fatalf("seed %d: within %v the tree ends with %v, and %v is possible", seed, limit, found, least)
			}
			if steps > 3 {
				divided++
			}
		}
	}
	if tried < 500 || divided < 100 {
		t.Errorf("%d problems, %d trees of several branches", tried, divided)
	}
}
