package planner_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// spreadProblem returns llama-3.2-1b on equal GPUs, in stages of several GPUs.
func spreadProblem(t *testing.T, gpus int, capacity int64, dp, tp string, objective planner.Objective) planner.Problem {
	t.Helper()
	graph := readModel(t, "llama-3.2-1b")
	gpu := costmodel.Device{
		Name: "GPU", CapacityBytes: capacity, FLOPS: 4e14, WorkspaceBytes: 32 << 20,
		Rates: costmodel.Rates{BytesPerSecond: 3e12, CollectiveBytesPerSecond: 2e11, LinkBytesPerSecond: 2e11, CollectiveSeconds: 2e-5},
	}
	topology := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu}, gpus)}
	workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 8, MicroBatches: 8, Seq: 1024, Precision: costmodel.BF16True}
	for at, text := range map[interface{ Set(text string) error }]string{&workload.DP: dp, &workload.TP: tp} {
		if err := at.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	workload, err := estimate.Resolve(graph, estimate.On(graph, workload, topology))
	if err != nil {
		t.Fatal(err)
	}
	costs, err := estimate.Table(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	return planner.Problem{Graph: graph, Costs: costs, Topology: topology, Objective: objective}
}

// TestStagesOfGPUs: a plan of stages names the first GPU of each stage and predicts all GPUs of a
// stage equally. The check of its map gives the same prediction.
func TestStagesOfGPUs(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		for _, degrees := range [][3]string{{"2", "2", "4"}, {"1", "4", "4"}, {"4", "1", "4"}, {"1", "8", "8"}, {"2", "1", "2"}} {
			problem := spreadProblem(t, 8, 80<<30, degrees[0], degrees[1], objective)
			sol, err := planner.Solve(t.Context(), problem, planner.Settings{})
			if err != nil {
				t.Fatal(degrees, err)
			}
			size := int(degrees[2][0] - '0')
			for unit, device := range sol.Map {
				if int(device)%size != 0 {
					t.Errorf("%v: unit %d is on device %d, within a stage", degrees, unit, device)
				}
			}
			for gpu := range sol.Devices {
				first := sol.Devices[gpu/size*size].Predicted.PeakAllocatedBytes
				if got := sol.Devices[gpu].Predicted.PeakAllocatedBytes; got != first || got == 0 {
					t.Errorf("%v: GPU %d peaks at %d B, the first of its stage at %d", degrees, gpu, got, first)
				}
			}
			if !sol.Optimal() {
				t.Errorf("%v %s: %s", degrees, objective, sol.Status)
			}
			report := devicemap.Check(problem.Graph, problem.Costs, problem.Topology, sol.Map.Flatten(problem.Graph), nil)
			if len(report.Faults) > 0 || !slices.EqualFunc(report.Devices, sol.Devices, func(a, b devicemap.Prediction) bool { return a.Share == b.Share }) {
				t.Errorf("%v: the check finds %v", degrees, report.Faults)
			}
			if step := devicemap.StepSeconds(problem.Costs, problem.Topology, sol.Map); objective == planner.Time && (step == nil || *step != sol.Value) {
				t.Errorf("%v: the step is %v, and %v of the map", degrees, sol.Value, step)
			}
		}
	}
}

// TestStagesFitNowhere: the error is about GPUs.
func TestStagesFitNowhere(t *testing.T) {
	sol, err := planner.Solve(t.Context(), spreadProblem(t, 8, 1<<30, "2", "2", planner.Memory), planner.Settings{})
	var large *planner.InfeasibleError
	if !errors.As(err, &large) || large.Worst%4 != 0 || len(large.Best.Devices) != 8 || sol == nil {
		t.Fatalf("%v", err)
	}
}

// TestWithinStage: a map may name only the first GPU of a stage.
func TestWithinStage(t *testing.T) {
	problem := spreadProblem(t, 4, 80<<30, "1", "2", planner.Memory)
	placed := make(devicemap.Map, len(problem.Graph.Units))
	for unit := range placed {
		if unit > 8 {
			placed[unit] = 3
		}
	}
	report := devicemap.Check(problem.Graph, problem.Costs, problem.Topology, placed.Flatten(problem.Graph), nil)
	if len(report.Faults) == 0 || report.Faults[0].Kind != "unknown-device" {
		t.Errorf("%v", report.Faults)
	}
}
