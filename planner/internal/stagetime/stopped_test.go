package stagetime_test

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimePipelineStopped: a search over orders of devices that is stopped at once proves nothing.
func TestTimePipelineStopped(t *testing.T) {
	p := randomproblem.PipelineOf(t, randomproblem.Llama8B, 4, costmodel.Workload{Mode: costmodel.Infer, Batch: 8, MicroBatches: 8, Seq: 256})
	p.Objective = planner.Time
	for d := range p.Topology.Devices {
		p.Topology.Devices[d].FLOPS /= float64(4 - d) // the fastest is last
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
