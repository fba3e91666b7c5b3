package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// flux returns a problem of FLUX.1's transformer alone, 22.2 GiB of weights, on GPUs by name.
func flux(t *testing.T, gpus ...string) planner.Problem {
	t.Helper()
	graph, err := diffusers.FromConfig("config.json", []byte(`{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`))
	if err != nil {
		t.Fatal(err)
	}
	problem := planner.Problem{Topology: &costmodel.Topology{}, Diffusion: &planner.Diffusion{Pipeline: &diffusers.Pipeline{
		Folder: "models/flux", Class: "FluxPipeline", Components: []diffusers.Component{{Name: "transformer", Library: "diffusers", Class: graph.Class, Graph: graph}},
	}}}
	for _, name := range gpus {
		problem.Topology.Devices = append(problem.Topology.Devices, costmodel.Device{Name: name})
	}
	return problem
}

// TestDiffusion: a pipeline is solved like any other model. Its plan file has each device's memory
// in its fullest phase.
func TestDiffusion(t *testing.T) {
	problem := flux(t, "h100-80gb")
	solution, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil || solution.LargestShare > 1 || solution.Status != planner.Feasible || len(solution.Configs) != 1 {
		t.Fatalf("%+v, %v", solution, err)
	}
	plan := solution.File(&problem)
	first := &plan.Devices[0]
	if first.Share != solution.LargestShare || plan.Objective.Value != first.Share || first.Predicted.PeakAt != "denoise" || first.HeadroomBytes != first.Budget-first.Predicted.PeakAllocatedBytes-first.Predicted.OverheadBytes {
		t.Errorf("%+v of %+v", first, plan.Objective)
	}
	if plan.Model.Name != "flux" || plan.Workload.Runtime != "diffusers" || len(plan.Phases) != 1 || plan.Objective.Gap != 0 || plan.StepSeconds == nil || !strings.Contains(string(plan.Pipeline), `"class":"FluxPipeline"`) {
		t.Errorf("%+v", plan)
	}
	for _, objective := range []planner.Objective{planner.Time, planner.Latency} {
		problem.Objective = objective
		if _, err := planner.Solve(t.Context(), problem, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "for memory alone") {
			t.Errorf("%s: %v", objective, err)
		}
	}
	if _, err := planner.SolveFront(t.Context(), problem, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "for memory alone") {
		t.Errorf("a front: %v", err)
	}
}

// TestDiffusionTooLarge: a pipeline that does not fit has the same error and the same proposed
// changes as other models. Each change makes it fit.
func TestDiffusionTooLarge(t *testing.T) {
	problem := flux(t, "rtx-4090")
	problem.Topology.Devices[0].ReservedBytes = 4 << 30
	_, err := planner.Solve(t.Context(), problem, planner.Settings{})
	var large *planner.InfeasibleError
	if !errors.As(err, &large) || !large.Proved || large.Needed <= large.Budget || large.Best.LargestShare <= 1 {
		t.Fatalf("%v", err)
	}
	if want := "does not fit on 1 GPU: GPU 0 needs "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	helps := 0
	for _, change := range strategy.Smallest(t.Context(), problem, strategy.Options{}) {
		solution, err := planner.Solve(t.Context(), *change.To, planner.Settings{})
		if err != nil || solution.LargestShare > 1 || !change.Row.Fits || change.Row.Headroom != solution.Devices[0].HeadroomBytes {
			t.Errorf("%v: %v", change.Set, err)
		}
		if len(change.Set) == 1 && change.Set[0].Field == "offload" {
			helps++
		}
	}
	if helps < 2 {
		t.Errorf("%d ways to offload help", helps)
	}
}

// TestDiffusionDegrees: of the open degrees, those that fit come first, the fastest at the top.
// Each GPU has its own budget.
func TestDiffusionDegrees(t *testing.T) {
	uneven := flux(t, "h100-80gb", "rtx-4090")
	uneven.Topology.Devices[1].ReservedBytes = 4 << 30
	solution, err := planner.Solve(t.Context(), uneven, planner.Settings{})
	if err != nil || solution.LargestShare > 1 || len(solution.Configs) < 3 {
		t.Fatalf("%v", err)
	}
	for i, way := range solution.Configs[1:] {
		before := solution.Configs[i]
		if before.LargestShare > 1 && way.LargestShare <= 1 || (before.LargestShare <= 1) == (way.LargestShare <= 1) && before.Pipeline.Seconds > way.Pipeline.Seconds {
			t.Errorf("%+v stands before %+v", before.Pipeline.Workload, way.Pipeline.Workload)
		}
	}
	if solution.Configs[len(solution.Configs)-1].LargestShare <= 1 {
		t.Error("all degrees fit: the order is not tested")
	}
	problem := flux(t, "rtx-4090", "rtx-4090")
	problem.Diffusion.Workload = phases.Workload{Batch: 64, Height: 2048, Width: 2048}
	if _, err := planner.Solve(t.Context(), problem, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "on 2 GPUs, whatever the degrees; infeasibility is not proven") {
		t.Errorf("%v", err)
	}
}
