package chaintime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimeManyKinds: there are too many kinds of devices to try every order. The order by number is
// optimal only if a bound for any order proves it.
func TestTimeManyKinds(t *testing.T) {
	p := randomproblem.TimedChain(t, 3, 13)
	sol, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || sol.Value != 4 || sol.Status == planner.Optimal && sol.LowerBound != 4 {
		t.Fatalf("%+v, %v", sol, err)
	}
	p = randomproblem.TimedChain(t, 2, 13)
	if sol, err = planner.Solve(t.Context(), p, planner.Settings{}); err != nil || sol.Value != 2 || sol.Status != planner.Optimal {
		t.Fatalf("%+v, %v", sol, err)
	}
	if sol.LowerBound < 2*(1-1e-9) {
		t.Errorf("the bound is %v, and 2 s are needed in any order", sol.LowerBound)
	}
}
