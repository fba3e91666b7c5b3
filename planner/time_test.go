package planner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimeStopped: a search that is stopped at once returns the answer of the memory objective, and
// a valid bound.
func TestTimeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := randomproblem.TimedChain(t, 6, 6)
	sol, err := planner.Solve(ctx, p, planner.Settings{})
	if err != nil || sol.Status != planner.LimitReached || sol.LowerBound > 8 || sol.Value < 8 {
		t.Fatalf("%+v, %v", sol, err)
	}
	best, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || best.Status != planner.Optimal || best.Value != 8 {
		t.Fatalf("%+v, %v", best, err)
	}
	f, err := planner.SolveFront(ctx, p, planner.Settings{})
	if err != nil || f.Complete || len(f.Points) == 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTimeRefused: a link is refused if it is so slow that a step has no finite time. So are units
// that declare an infinite time.
func TestTimeRefused(t *testing.T) {
	var timed *costmodel.FieldError
	p := randomproblem.TimedChain(t, 3, 2)
	p.Topology.Links = []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 1e-300}}
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &timed) {
		t.Errorf("%v: a link of 1e-300 B/s", err)
	}
	p = randomproblem.TimedChain(t, 3, 2)
	p.Costs.Units[0].Work.Forward.Profiled, p.Costs.Units[1].Work.Forward.Profiled = 1e308, 1e308
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &timed) {
		t.Errorf("%v: a step of 2e308 s", err)
	}
	p = randomproblem.TimedChain(t, 3, 2)
	p.Costs.Units[1].Work.Forward.Strided = -1
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); err == nil {
		t.Error("a negative cost passed")
	}
}
