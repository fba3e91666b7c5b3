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

// TestTrialsGoOn: a trial that a turn had no time for is gone on with in the next, as long
// as its load is between the bound and the answer; else the next asks about a new one.
func TestTrialsGoOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	problem := graphtest.NearChain(rand.New(rand.NewPCG(1, 81)), 40, 20, graph.Kind{Count: 4, Capacity: math.Inf(1)})
	solution, err := Solve(ctx, problem, graph.Settings{TimeLimit: time.Minute})
	least := graphtest.Scored(t, problem, solution, err)
	if !solution.Optimal() {
		t.Fatalf("%v, bound %v", least, solution.LowerBound)
	}
	ordered, err := newOrder(problem, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string]struct{ bound, want float64 }{
		"still of use": {0.9, 0.93},
		"proved since": {0.94, (0.94 + 1) / 2},
	} {
		call := &contiguous{order: ordered, limits: standard, Incumbent: graph.NewIncumbent(problem, graph.Settings{})}
		call.Answer.Place, call.Answer.Value, call.Answer.LowerBound = solution.Place, least, is.bound*least
		priced := call.newStagePrices(ctx)
		priced.limit = 0.93 * least
		first, last := priced.Windows(priced.limit * (1 + 1e-8))
		looks := 1
		for ; !priced.Open(); looks++ {
			if priced.Refute(&countdown{ctx, looks}, priced.limit, first, last, priced.work) != nil {
				t.Fatalf("%s: refuted by %d looks, and not open with fewer", name, looks)
			}
		}
		priced.trial(ctx, call, time.Now().Add(time.Minute))
		if got := priced.limit / least; math.Abs(got-is.want) > 1e-6 {
			t.Errorf("%s: the next turn asks about %v of the answer, want %v", name, got, is.want)
		}
		if priced.Open() || is.bound < 0.93 && call.Answer.LowerBound < 0.93*least {
			t.Errorf("%s: a turn without an end leaves the trial open: %v; a bound of %v", name, priced.Open(), call.Answer.LowerBound/least)
		}
	}
}
