package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner"
)

// TestUniformExperts: experts under Megatron's tensor parallelism get the sequence parallelism that
// they need. Dense models do not.
func TestUniformExperts(t *testing.T) {
	for name, want := range map[string]bool{"mixtral-8x7b": true, "llama-3.1-8b": false} {
		problem := gridProblem(t, 8, "megatron", planner.Memory)
		work := &problem.Workload
		problem.Graph, work.Batch, work.MicroBatches, work.DP, work.CP = readModel(t, name), 4, 4, 1, 1
		for i := range problem.Topology.Devices {
			problem.Topology.Devices[i].CapacityBytes *= 4
		}
		sol, err := planner.Solve(t.Context(), problem, planner.Settings{})
		if err != nil {
			t.Fatal(name, err)
		}
		chosen := &sol.Costs.Workload
		if warned := strings.Contains(fmt.Sprint(sol.Warnings), "the plan has sequence_parallel"); chosen.TP.Count() == 1 || chosen.SequenceParallel != want || warned != want {
			t.Errorf("%s: tp %v, sequence parallelism %v, warnings %q", name, chosen.TP, chosen.SequenceParallel, sol.Warnings)
		}
	}
}

// TestFitsOnly: with FitsOnly, a problem that does not fit is refused sooner. One that fits has an
// answer that fits, with a bound of all forms.
func TestFitsOnly(t *testing.T) {
	for _, capacity := range []int64{1 << 30, 4 << 30, 80 << 30} {
		problem := gridProblem(t, 8, "megatron", planner.Memory)
		for i := range problem.Topology.Devices {
			problem.Topology.Devices[i].CapacityBytes = capacity
		}
		whole, err := planner.Solve(t.Context(), problem, planner.Settings{})
		fits, failed := planner.Solve(t.Context(), problem, planner.Settings{FitsOnly: true})
		t.Logf("%d: %v %v", capacity, err, failed)
		if (err == nil) != (failed == nil) || err == nil && (fits.LargestShare > 1 || fits.LowerBound > whole.Value) {
			t.Errorf("%d: %v, and if it only has to fit %v", capacity, err, failed)
		}
		if large := (*planner.InfeasibleError)(nil); err != nil && (!errors.As(failed, &large) || !large.Proved) {
			t.Errorf("%d: %v", capacity, failed)
		}
	}
}
