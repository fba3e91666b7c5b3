package planner_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// recomputeProblem returns a model on GPUs of an H200's speed with this memory, under torch.
func recomputeProblem(t *testing.T, model string, workload costmodel.Workload, gpus int, capacity int64) planner.Problem {
	t.Helper()
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	device := gpu.Device(costmodel.Train)
	device.CapacityBytes = capacity
	workload.Mode, workload.Precision, workload.Runtime, workload.Seq, workload.World = costmodel.Train, costmodel.BF16True, "torch", 2048, int64(gpus)
	topology := &costmodel.Topology{}
	for range gpus {
		topology.Devices = append(topology.Devices, device)
	}
	return planner.Problem{Graph: readModel(t, model), Workload: workload, Topology: topology, Objective: planner.Time}
}

// stepWith returns the step with these blocks recomputed, or infinity if it does not fit.
func stepWith(t *testing.T, problem planner.Problem, recompute string) float64 {
	t.Helper()
	problem.Workload.Recompute = recompute
	solution, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Minute})
	var large *planner.InfeasibleError
	switch {
	case errors.As(err, &large):
		return math.Inf(1)
	case err != nil:
		t.Fatal(err)
	}
	return solution.Value
}

// Under FSDP, auto is the fastest of all lists of first and of last blocks, among them none and all.
func TestRecomputedReplicas(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, capacity := range []int64{31 << 30, 27 << 30, 24 << 30, 21 << 30, 18 << 30, 8 << 30} {
		problem := recomputeProblem(t, "llama-3.2-1b", costmodel.Workload{Strategy: costmodel.FSDP, Batch: 4}, 4, capacity)
		best := min(stepWith(t, problem, costmodel.RecomputeNone), stepWith(t, problem, costmodel.RecomputeFull))
		for last := range 16 {
			best = min(best, stepWith(t, problem, fmt.Sprintf("0-%d", last)), stepWith(t, problem, fmt.Sprintf("%d-15", last)))
		}
		problem.Objective = planner.Memory // there is one placement: auto finds the same
		problem.Workload.Recompute = "auto"
		solution, err := planner.Solve(t.Context(), problem, planner.Settings{})
		if math.IsInf(best, 1) {
			if err == nil {
				t.Errorf("%v: recompute %s, and no list fits", costmodel.Bytes(capacity), solution.Costs.Workload.Recompute)
			}
			continue
		}
		if err != nil || solution.Value != best || solution.LowerBound > best || solution.LargestShare > 1 {
			t.Errorf("%v: %+v, %v; the best list takes %v", costmodel.Bytes(capacity), solution, err, best)
			continue
		}
		if solution.Costs.Workload.ListsRecomputed() {
			lists++
		}
	}
	if lists < 3 {
		t.Errorf("%d lists", lists)
	}
}

// Where later blocks keep more for their time than the first, the last are recomputed: DeepSeek-V3
// begins with three dense blocks.
func TestLastBlocksRecomputed(t *testing.T) {
	t.Parallel()
	workload := costmodel.Workload{Strategy: costmodel.FSDP, Batch: 4}
	problem := recomputeProblem(t, "deepseek-v3", workload, 4, 1372<<30)
	problem.Workload.Recompute = "auto"
	solution, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	chosen := solution.Costs.Workload.Recompute
	var first int
	if n, err := fmt.Sscanf(chosen, "%d-60", &first); n != 1 || err != nil || first < 3 {
		t.Fatalf("recompute %s", chosen)
	}
	for last := range 61 {
		if took := stepWith(t, problem, fmt.Sprintf("0-%d", last)); took <= solution.Value {
			t.Errorf("recompute %s takes %v, 0-%d takes %v", chosen, solution.Value, last, took)
		}
	}
}

// Under torch's pipelines, lists of blocks are never slower than stages that recompute all blocks or
// none, and the bound holds for these.
func TestRecomputedPipelines(t *testing.T) {
	t.Parallel()
	faster := 0
	for _, schedule := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe} {
		for _, capacity := range []int64{80 << 30, 56 << 30, 46 << 30, 41 << 30, 20 << 30} {
			problem := recomputeProblem(t, "llama-3.1-8b", costmodel.Workload{Strategy: costmodel.Pipeline, Schedule: schedule, Batch: 32, MicroBatches: 8}, 4, capacity)
			best := min(stepWith(t, problem, costmodel.RecomputeNone), stepWith(t, problem, costmodel.RecomputeFull))
			problem.Workload.Recompute = "auto"
			resolved, err := problem.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			if stages, err := planner.SolveDegrees(t.Context(), &resolved); err == nil && stages.LargestShare <= 1 {
				best = min(best, stages.Value)
			}
			lists := stepWith(t, problem, "auto")
			if lists > best*(1+1e-12) {
				t.Errorf("%s, %v: lists of blocks take %v, stages that recompute all or nothing %v", schedule, costmodel.Bytes(capacity), lists, best)
			}
			if lists < best*(1-1e-3) && !math.IsInf(best, 1) {
				faster++
			}
		}
	}
	if faster < 2 {
		t.Errorf("lists are faster in %d cases", faster)
	}
}
