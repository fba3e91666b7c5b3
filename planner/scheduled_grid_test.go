package planner_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// fullSize returns the training of llama-3.1-8b on H100s, with two sequences of 2048 tokens in each
// micro-batch.
func fullSize(tb testing.TB, gpus int, batches int64, kind costmodel.ScheduleKind) planner.Problem {
	tb.Helper()
	problem := planner.Problem{Graph: readModel(tb, "llama-3.1-8b"), Objective: planner.Time, Topology: &costmodel.Topology{}, Workload: costmodel.Workload{
		Mode: costmodel.Train, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Batch: 2 * batches, MicroBatches: batches, Seq: 2048, Precision: costmodel.BF16True, Schedule: kind, World: int64(gpus),
	}}
	gpu, err := catalogue.Find("h100-80gb")
	if err != nil {
		tb.Fatal(err)
	}
	problem.Topology.Devices = slices.Repeat([]costmodel.Device{gpu.Device(costmodel.Train)}, gpus)
	return problem
}

// With the memory that the fullest GPU of a published order uses, the chosen order is no slower. The
// variable SCHEDULES=all compares up to 16 GPUs and 64 micro-batches.
func TestPublishedAtTheirMemory(t *testing.T) {
	gpus, batches := []int{4}, []int64{8}
	if os.Getenv("SCHEDULES") == "all" {
		gpus, batches = []int{2, 4, 8, 16}, []int64{8, 16, 32, 64}
	}
	compared := 0
	for _, ranks := range gpus {
		settings := planner.Settings{TimeLimit: time.Hour}
		if ranks > 8 { // the cuts of so many stages are not searched to the end
			settings.TimeLimit = planner.DefaultTimeLimit
		}
		for _, count := range batches {
			for _, kind := range costmodel.ScheduleKinds() {
				published, err := planner.Solve(t.Context(), fullSize(t, ranks, count, kind), settings)
				if err != nil {
					continue // more than the GPUs have
				}
				problem := fullSize(t, ranks, count, costmodel.AutoSchedule)
				device := &problem.Topology.Devices[0]
				device.ReservedBytes = device.CapacityBytes - int64(published.LargestShare*float64(device.Budget())+0.5)
				problem.Topology.Devices = slices.Repeat([]costmodel.Device{*device}, ranks)
				chosen, err := planner.Solve(t.Context(), problem, settings)
				if err != nil {
					t.Errorf("%d GPUs, %d micro-batches, the memory of %s: %v", ranks, count, kind, err)
					continue
				}
				compared++
				t.Logf("%2d GPUs, %2d micro-batches, %8v of %-11s: %4.0f ms, chosen %4.0f ms (%.2f x), at least %4.0f ms", ranks, count,
					costmodel.Bytes(device.Budget()), kind, 1e3*published.Value, 1e3*chosen.Value, published.Value/chosen.Value, 1e3*chosen.LowerBound)
				if chosen.Value > published.Value*(1+1e-9) || chosen.LargestShare > 1 {
					t.Errorf("%d GPUs, %d micro-batches: %v with share %v, and %s takes %v", ranks, count, chosen.Value, chosen.LargestShare, kind, published.Value)
				}
			}
		}
	}
	if compared < 7 {
		t.Errorf("%d orders compared", compared)
	}
}

// More memory gives no slower step, and no lower bound grows with it.
func TestMoreMemory(t *testing.T) {
	var last *planner.Solution
	for _, budget := range []int64{18, 20, 24, 33} {
		problem := fullSize(t, 4, 8, costmodel.AutoSchedule)
		problem.Workload.Recompute = "auto"
		device := &problem.Topology.Devices[0]
		device.ReservedBytes = device.CapacityBytes - budget<<30
		problem.Topology.Devices = slices.Repeat([]costmodel.Device{*device}, 4)
		chosen, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && (chosen.Value > last.Value || chosen.LowerBound > last.LowerBound*1.001) {
			t.Errorf("%d GiB: %v, at least %v; less memory: %v, at least %v", budget, chosen.Value, chosen.LowerBound, last.Value, last.LowerBound)
		}
		last = chosen
	}
}
