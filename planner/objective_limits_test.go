package planner_test

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
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
	p := chainOf(t, sizes, budgets...)
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
