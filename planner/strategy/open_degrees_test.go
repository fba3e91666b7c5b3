package strategy_test

import (
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestBrief: after its time, a search with open degrees tries GPUs alone, until something fits.
func TestBrief(t *testing.T) {
	before, after := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for i, row := range []struct {
		end               time.Time
		found, wide, over bool
	}{
		{before, true, true, false}, {before, false, false, false}, {after, false, false, true}, {after, false, true, false}, {after, true, true, true},
	} {
		if got := strategy.BriefOver(row.end, row.found, row.wide); got != row.over {
			t.Errorf("row %d: over %v", i, got)
		}
	}
}

// TestOpenDegrees: changes of a problem with open degrees fit with both objectives, and ask for the
// problem's own.
func TestOpenDegrees(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		p := problem(t, "llama-3.1-70b", "h100-80gb", 16, costmodel.Workload{
			Mode: costmodel.Train, Strategy: costmodel.Pipeline, Runtime: "torchtitan", Batch: 64, MicroBatches: 16, Seq: 4096,
			DP: costmodel.AutoDegree, TP: costmodel.AutoDegree, PP: costmodel.AutoDegree, CP: costmodel.AutoDegree,
		})
		p.Objective = objective
		changes := strategy.Smallest(t.Context(), p, strategy.Options{})
		if len(changes) == 0 {
			t.Errorf("%v: nothing helps", objective)
		}
		for i := range changes {
			to := *changes[i].To
			to.Costs = nil
			to, err := to.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			if solution, err := planner.Solve(t.Context(), to, planner.Settings{}); err != nil || solution.LargestShare > 1 || !changes[i].Row.Fits || to.Objective != objective {
				t.Errorf("%v: %v: %v, objective %v", objective, changes[i].Set, err, to.Objective)
			}
		}
	}
}
