package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// inARow is a drawn problem with the contiguous answer that there is at once.
func inARow(over context.Context, seed uint64) (*graph.Problem, *anywhere) {
	problem := graphtest.NearChain(rand.New(rand.NewPCG(seed, 5)), 60, 40, graph.Kind{Count: 5, Capacity: math.Inf(1)})
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
	call.inOrder(over)
	return problem, call
}

// The contiguous answer goes on as long as it is near the best, and is the better
// for it.
func TestRowsGoOnWhileTheyAreNear(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	over, stop := context.WithCancel(ctx)
	stop()
	better := 0
	for seed := range uint64(8) {
		problem, call := inARow(over, seed)
		split := newSplitter(ctx, call.Netlist, splitCells)
		find := call.newFinder(split, 0)
		sol, err := downset.Solve(over, problem, graph.Settings{})
		first := graphtest.Scored(t, problem, sol, err)
		call.inRow(ctx, find)
		if call.moves.search != nil {
			t.Fatalf("seed %d: it goes on before its time", seed)
		}
		call.rowBound = 0 // by moves
		call.spent = time.Nanosecond
		call.inRow(ctx, find)
		if call.moves.search == nil || call.rowSpent <= 0 {
			t.Fatalf("seed %d: the contiguous answer is the best, but does not go on", seed)
		}
		if call.rowValue > first || call.Answer.Value > call.rowValue*(1+1e-9) {
			t.Errorf("seed %d: %v, in a row %v, from %v", seed, call.Answer.Value, call.rowValue, first)
		}
		if call.rowValue < first*(1-1e-9) {
			better++
		}
		call.Answer.Value = call.rowValue / (1 + near/2)
		if share := call.share(); math.Abs(share-0.5) > 1e-9 {
			t.Errorf("seed %d: half of what is near behind, a share of %v", seed, share)
		}
		call.Answer.Value = call.rowValue / (1 + 2*near)
		was := call.rowSpent
		call.spent = time.Hour
		call.inRow(ctx, find)
		if call.rowSpent != was {
			t.Errorf("seed %d: far behind, but it goes on", seed)
		}
	}
	if better < 4 {
		t.Errorf("%d contiguous answers of 8 are better for it", better)
	}
}

// Where the contiguous answer's own bound is near, it is searched for whole again, longer
// each time, until it is proved; then it does not go on.
func TestRowsAreClosed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	over, stop := context.WithCancel(ctx)
	stop()
	for seed := range uint64(8) {
		problem := graphtest.NearChain(rand.New(rand.NewPCG(seed, 7)), 60, 40, graph.Kind{Count: 2, Capacity: math.Inf(1)})
		least, err := downset.Solve(ctx, problem, graph.Settings{})
		want := graphtest.Scored(t, problem, least, err)
		call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
		call.inOrder(over)
		split := newSplitter(ctx, call.Netlist, splitCells)
		find := call.newFinder(split, 0)
		call.rowBound, call.whole = call.Answer.Value*(1-near), time.Hour
		call.rowRound(ctx, find)
		if call.row != nil || call.wholeSpent <= 0 {
			t.Errorf("seed %d: the whole search is not done", seed)
		}
		if call.Answer.Value > want*(1+1e-9) {
			t.Errorf("seed %d: %v, the least in a row is %v", seed, call.Answer.Value, want)
		}
		if call.moves.search != nil {
			t.Errorf("seed %d: it is closed by moves", seed)
		}
		call.row = []int{}
		for _, bound := range []float64{call.Answer.Value, call.Answer.Value * (1 - 3*near)} {
			if call.rowBound = bound; call.closable() {
				t.Errorf("seed %d: with a bound of %v the best in a row may be below %v, and near", seed, bound, call.Answer.Value)
			}
		}
	}
}
