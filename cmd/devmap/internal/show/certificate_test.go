package show

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestProved: the text has no bound that was not proved. It calls nothing infeasible without a
// search.
func TestProved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound           float64
		status          planner.Status
		objective       planner.Objective
		certificate, is string
	}{
		{0, planner.LimitReached, planner.Memory, "no lower bound was proved in the time", "search (stopped before it refuted any)"},
		{.25, planner.LimitReached, planner.Memory, "lower bound 25.00% (search)", "search (every smaller share up to it was refuted)"},
		{.25, planner.Feasible, planner.Time, "lower bound 250 ms (search)", "search (every shorter step up to it was refuted)"},
		{.5, planner.Optimal, planner.Memory, "lower bound 50.00% (search)", "search (every smaller share was refuted)"},
	} {
		solution := &planner.Solution{Objective: c.objective}
		solution.LowerBound, solution.Bound, solution.Status = c.bound, "search", c.status
		unit := percent
		if c.objective == planner.Time {
			unit = Seconds
		}
		if got := proved(c.bound, "search", "", unit); got != c.certificate {
			t.Errorf("%q, want %q", got, c.certificate)
		}
		if got := boundReason(solution); got != c.is {
			t.Errorf("%q, want %q", got, c.is)
		}
	}
	if got := proved(0, "search", " for the units on GPUs", percent); !strings.HasPrefix(got, "no lower bound for the units on GPUs ") {
		t.Error(got)
	}
}

// TestAnswerUnfit: a plan that does not fit has no proof, since its bound is of plans that do not fit either.
func TestAnswerUnfit(t *testing.T) {
	t.Parallel()
	for _, verdict := range []devicemap.Verdict{"fits", tight, doesNotFit} {
		plan := &devicemap.Plan{Verdict: verdict, Devices: []devicemap.Prediction{{Verdict: verdict}}}
		plan.Objective.Status, plan.Objective.LowerBound, plan.Objective.Bound = string(planner.Optimal), 1.5, "search"
		if _, proof := Answer(plan); (proof == "") != (verdict == doesNotFit) {
			t.Errorf("%s: %q", verdict, proof)
		}
	}
}
