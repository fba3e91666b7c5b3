package planner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

func BenchmarkChosenSchedule(b *testing.B) {
	graph := readModel(b, "llama-3.1-8b")
	problem := planner.Problem{Graph: graph, Objective: planner.Time, Topology: &costmodel.Topology{}, Workload: costmodel.Workload{
		Mode: costmodel.Train, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Batch: 16, MicroBatches: 16, Seq: 2048, Precision: costmodel.BF16True, Schedule: costmodel.AutoSchedule, World: 8,
	}}
	gpu, err := catalogue.Find("h100-80gb")
	if err != nil {
		b.Fatal(err)
	}
	problem.Topology.Devices = slices.Repeat([]costmodel.Device{gpu.Device(costmodel.Train)}, 8)
	for b.Loop() {
		if _, err := planner.Solve(b.Context(), problem, planner.Settings{TimeLimit: time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
}
