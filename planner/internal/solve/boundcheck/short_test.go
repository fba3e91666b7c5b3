package boundcheck_test

import (
	"context"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// TestShortWithOthers: two and two of four nodes have a load of 2. Of what the
// first sends the second only these two can count: with the two others, which have
// nothing to do with it, every pair would pay, and 2 would be refuted.
func TestShortWithOthers(t *testing.T) {
	problem := &graph.Problem{Kinds: []graph.Kind{{Count: 2, Capacity: math.Inf(1)}}, Edges: [][2]int{{0, 1}}}
	proof := &boundcheck.Proof{Limit: 2, Price: make(map[int]float64)}
	kind := boundcheck.Kind{Rent: 1, PerLoad: 0.5, Order: []int{0, 1, 2, 3}}
	for node := range 4 {
		problem.Nodes = append(problem.Nodes, graph.Node{Time: []float64{1}, Transfer: 1, Group: node})
		proof.Price[node] = 1
	}
	for _, kept := range [][]int{{0, 1}, {0, 2, 3}, {2, 3}, nil} {
		kind.Short = []boundcheck.Short{{Groups: []int{0, 1}, Kept: kept}}
		proof.Kinds = []boundcheck.Kind{kind}
		if boundcheck.Check(context.Background(), problem, proof) == nil {
			t.Errorf("with %v of the output a load of 2 is refuted, which two and two nodes have", kept)
		}
	}
}
