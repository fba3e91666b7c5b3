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

// TestGainsAreOnesOwn: what others have proved is no gain of a prover that goes on from it.
func TestGainsAreOnesOwn(t *testing.T) {
	one := prover{now: standing{12, 20}, half: standing{10, 10}, next: standing{12, 20}}
	one.from(15)
	one.now = standing{15, 20}
	if got := one.will(10); got != 17 {
		t.Errorf("from 15, at 0.2 a moment, it is said to reach %v in 10; want 17", got)
	}
	one.from(14)
	if one.half.reached != 13 {
		t.Errorf("a bound below its own lifts it to %v", one.half.reached)
	}
}
