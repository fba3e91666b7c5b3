package planner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/drawn"
)

// timedChain is a chain of units of a second each, on devices that differ in
// what they hold.
func timedChain(t *testing.T, units, devices int) planner.Problem {
	t.Helper()
	sizes, budgets := make([]int64, units), make([]int64, devices)
	for i := range sizes {
		sizes[i] = 100
	}
	for d := range budgets {
		budgets[d] = int64(250 + d)
	}
	p := drawn.Chain(t, sizes, budgets...)
	p.Costs.Workload.Mode = costmodel.Infer
	for u := range p.Costs.Units {
		p.Costs.Units[u].Work.Forward.Products, p.Costs.Units[u].Work.Output = 1, 1
	}
	for d := range p.Topology.Devices {
		p.Topology.Devices[d].FLOPS, p.Topology.Devices[d].LinkBytesPerSecond = 1, 1
	}
	p.Objective = planner.Time
	return p
}

// TestTimeManyKinds: with too many kinds of devices for every order, the
// order by number is proved where a bound of any order meets it, and is not
// said to be best where none does.
func TestTimeManyKinds(t *testing.T) {
	p := timedChain(t, 3, 13)
	sol, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || sol.Value != 4 || sol.Status == planner.Optimal && sol.LowerBound != 4 {
		t.Fatalf("%+v, %v", sol, err)
	}
	p = timedChain(t, 2, 13)
	if sol, err = planner.Solve(t.Context(), p, planner.Settings{}); err != nil || sol.Value != 2 || sol.Status != planner.Optimal {
		t.Fatalf("%+v, %v", sol, err)
	}
	if sol.LowerBound < 2*(1-1e-9) {
		t.Errorf("the bound is %v, and 2 s are needed in any order", sol.LowerBound)
	}
}

// TestTimeStopped: a search that may not begin returns the memory answer, and
// a bound that holds.
func TestTimeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := timedChain(t, 6, 6)
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

// TestTimePipelineStopped: a search over orders of devices that may not begin
// proves nothing.
func TestTimePipelineStopped(t *testing.T) {
	p := pipelineProblem(t, llama8B, 4, costmodel.Workload{Mode: costmodel.Infer, Batch: 8, MicroBatches: 8, Seq: 256})
	p.Objective = planner.Time
	for d := range p.Topology.Devices {
		p.Topology.Devices[d].FLOPS /= float64(4 - d) // the fastest last
		p.Topology.Devices[d].CapacityBytes = 20<<30 - int64(d)<<30
	}
	best, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || best.Status != planner.Optimal {
		t.Fatalf("%+v, %v", best, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sol, err := planner.Solve(ctx, p, planner.Settings{})
	if err != nil || sol.Status != planner.LimitReached || sol.LowerBound > best.Value*(1+1e-9) {
		t.Errorf("%s, at least %v, %v; the shortest step is %v", sol.Status, sol.LowerBound, err, best.Value)
	}
}

// TestTimeRefused: a link so slow that no step over it has a time is refused,
// and so are units that declare a time without end.
func TestTimeRefused(t *testing.T) {
	var timed *steptime.Error
	p := timedChain(t, 3, 2)
	p.Topology.Links = []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 1e-300}}
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &timed) {
		t.Errorf("%v: a link of 1e-300 B/s", err)
	}
	p = timedChain(t, 3, 2)
	p.Costs.Units[0].Work.Forward.Profiled, p.Costs.Units[1].Work.Forward.Profiled = 1e308, 1e308
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &timed) {
		t.Errorf("%v: a step of 2e308 s", err)
	}
	p = timedChain(t, 3, 2)
	p.Costs.Units[1].Work.Forward.Strided = -1
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); err == nil {
		t.Error("a negative cost passed")
	}
}
