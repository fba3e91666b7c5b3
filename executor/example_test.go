package executor_test

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/weights"
)

// A small Llama in two stages, trained for three steps on the processor: every
// region of an arena is touched to its last byte.
func ExampleRun() {
	graph, err := backendtest.Graph(backendtest.Families["llama"])
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := backendtest.Job(graph, costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 4, MicroBatches: 2, Seq: 8, Precision: costmodel.FP32True,
	}, 2, backendtest.Runs(2, 1, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := executor.Run(context.Background(), cpu.New(), job, &executor.Settings{
		Steps: 3, Weights: weights.Random(graph, 1), Optimizer: executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range result.Steps {
		fmt.Printf("step %d: a loss near ln 96: %t\n", step.Number, math.Abs(step.Loss-math.Log(96)) < 0.2)
	}
	for _, device := range result.Devices {
		fmt.Printf("device %d touched %v:", device.Device, costmodel.Bytes(device.Touched))
		for _, region := range device.Regions {
			fmt.Printf(" %s %d of %d", region.Name, region.TouchedBytes, region.PlannedBytes)
		}
		fmt.Println()
	}
	// Output:
	// step 1: a loss near ln 96: true
	// step 2: a loss near ln 96: true
	// step 3: a loss near ln 96: true
	// device 0 touched 380.0 KiB: workspace 0 of 4096 state 299264 of 299264 slots 4352 of 4352 stream 4608 of 4608 saved 68608 of 68608 scratch 8192 of 8192
	// device 1 touched 75.0 KiB: workspace 0 of 4096 state 50432 of 50432 slots 4352 of 4352 stream 4864 of 4864 saved 4608 of 4608 scratch 8448 of 8448
}
