package steptime_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// A model of two units on two devices. Under a device map one device works at a time. In a pipeline
// both do, except for the bubble at its ends.
func ExampleStep() {
	table := &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, MicroBatches: 4, Precision: costmodel.BF16True},
		Units: []costmodel.Unit{
			{Name: "first", Work: costmodel.Work{Forward: costmodel.Pass{Products: 1e12}, Backward: costmodel.Pass{Products: 2e12}}},
			{Name: "second", Work: costmodel.Work{Forward: costmodel.Pass{Products: 1e12}, Backward: costmodel.Pass{Products: 2e12}}},
		},
	}
	topo := &costmodel.Topology{Devices: []costmodel.Device{{FLOPS: 1e12}, {FLOPS: 1e12}}}
	for _, strategy := range []costmodel.Strategy{costmodel.DeviceMap, costmodel.Pipeline} {
		table.Workload.Strategy = strategy
		seconds, err := steptime.Step(table, topo, []int{0, 1})
		fmt.Println(strategy, seconds, err)
	}
	// Output:
	// device-map 24 <nil>
	// pipeline 15 <nil>
}

// Two stages under 1F1B: while the host is fast, a rank is busy for its three
// micro-batches and waits for the other in the bubble.
func ExampleSimulate() {
	schedule := costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 3}
	stages := []steptime.Stage{
		{Rank: 0, Forward: 1, Backward: 2, To: 0.25, From: 0.25},
		{Rank: 1, Forward: 1, Backward: 2},
	}
	for rank, end := range steptime.Simulate(schedule, true, stages) {
		busy := 3 * (stages[rank].Forward + stages[rank].Backward)
		fmt.Printf("rank %d ends after %v s, of which it waits %v\n", rank, end, end-busy)
	}
	// Output:
	// rank 0 ends after 13 s, of which it waits 4
	// rank 1 ends after 10.75 s, of which it waits 1.75
}
