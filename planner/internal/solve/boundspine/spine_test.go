package boundspine_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundspine"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// drawn is a problem of up to eight nodes on two to four devices of one kind, and
// its neighbours.
func drawn(random *rand.Rand) (problem *graph.Problem, before, after [][]int) {
	problem = graphtest.Whole(random)
	problem.Kinds = problem.Kinds[:1]
	problem.Kinds[0].Count = 2 + random.IntN(3)
	if spineful := random.IntN(2) == 0; spineful {
		// A node that all before lead to, and which leads to all behind.
		middle := len(problem.Nodes) / 2
		for node := range problem.Nodes {
			switch {
			case node < middle:
				problem.Edges = append(problem.Edges, [2]int{node, middle})
			case node > middle:
				problem.Edges = append(problem.Edges, [2]int{middle, node})
			}
		}
	}
	for node := range problem.Nodes {
		of := &problem.Nodes[node]
		of.Group, of.Backward, of.Time = node, false, of.Time[:1]
		if math.IsInf(of.Time[0], 1) {
			of.Time[0] = 3
		}
	}
	before, after = make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for _, edge := range problem.Edges {
		before[edge[1]], after[edge[0]] = append(before[edge[1]], edge[0]), append(after[edge[0]], edge[1])
	}
	return problem, before, after
}

// TestLeast: the least load that is possible is never refuted, and neither are the
// stages of a placement that has it; what is a little below often is.
func TestLeast(t *testing.T) {
	t.Parallel()
	tried, refuted := 0, 0
	for seed := range uint64(1500) {
		problem, before, after := drawn(rand.New(rand.NewPCG(seed, 47)))
		spine := boundspine.New(netlist.New(graph.NewInstance(problem, problem.Groups())), before, after)
		if spine == nil {
			continue
		}
		least := graphtest.LeastContiguous(problem)
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		tried++
		if bound := spine.Bound(context.Background(), 0, 2*least); bound > least*(1+1e-9) {
			t.Fatalf("seed %d: %v is refuted, and %v is possible", seed, bound, least)
		} else if bound > 0.95*least {
			refuted++
		}
	}
	if tried < 500 || refuted < 200 {
		t.Errorf("%d problems, on %d of them a bound within a twentieth", tried, refuted)
	}
}
