package downset

import (
	"context"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// patient is a context that ends after too many calls of Err.
type patient struct {
	context.Context //nolint:containedctx // it is one

	left int
}

func (patient *patient) Err() error {
	patient.left--
	if patient.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestNothingTakesTime: no node takes time and only transfers cost. The search still ends.
func TestNothingTakesTime(t *testing.T) {
	t.Parallel()
	problem := &graph.Problem{Kinds: []graph.Kind{{Name: "gpu", Count: 2, Capacity: 5}}}
	for _, node := range []graph.Node{
		{Name: "n0", Size: 1, Transfer: 2.5, Group: 1},
		{Name: "n1", Size: 1, Transfer: 1.5, Group: 1},
		{Name: "n2", Size: 1, Transfer: 2.5, Group: 0},
		{Name: "n3", Transfer: 0.5, Group: 2, Backward: true},
		{Name: "n4", Transfer: 2, Group: 3, Backward: true},
		{Name: "n5", Size: 4, Transfer: 2, Group: 6, Backward: true},
		{Name: "n6", Group: 3, Backward: true},
	} {
		node.Time = []float64{0}
		problem.Nodes = append(problem.Nodes, node)
	}
	problem.Edges = [][2]int{{0, 1}, {1, 3}, {2, 3}, {0, 4}, {3, 4}, {1, 5}, {2, 5}, {4, 5}, {0, 6}, {1, 6}, {2, 6}, {4, 6}, {5, 6}}
	ctx := &patient{context.Background(), 1_000_000}
	sol, err := solveWithin(ctx, problem, nil, limits{few: 3, some: 6, most: 12, states: 5})
	if ctx.left < 0 || err != nil || math.IsInf(sol.Value, 1) {
		t.Errorf("%+v, %v; it came to an end by itself: %v", sol, err, ctx.left >= 0)
	}
}
