package downset

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// TestNothingLeftToProve: where devices are of several kinds there are no boundaries to
// divide, and near the answer no prices: the time is left to what comes next.
func TestNothingLeftToProve(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kinds := []graph.Kind{{Count: 2, Capacity: math.Inf(1)}, {Count: 1, Capacity: math.Inf(1)}}
	problem := graphtest.NearChain(rand.New(rand.NewPCG(1, 5)), 20, 10, kinds[0])
	problem.Kinds = kinds
	for node := range problem.Nodes {
		problem.Nodes[node].Time = []float64{1, 2}
	}
	ordered, err := newOrder(problem, true)
	if err != nil {
		t.Fatal(err)
	}
	call := &contiguous{order: ordered, limits: standard, Incumbent: graph.NewIncumbent(problem, graph.Settings{})}
	call.Answer.Place, call.Answer.Value, call.Answer.LowerBound = make([]int, len(problem.Nodes)), 1, 0.99
	if err := call.inTurns(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("it goes on until the end: %v", err)
	}
}
