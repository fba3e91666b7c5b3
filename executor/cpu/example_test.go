package cpu_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/weights"
)

// A small Qwen3 generates the same tokens on three devices as on one.
func ExampleNew() {
	graph, err := backendtest.Graph(backendtest.Families["qwen3"])
	if err != nil {
		fmt.Println(err)
		return
	}
	var all [][]int32
	for _, devices := range []int{1, 3} {
		job, err := backendtest.Job(graph, costmodel.Workload{
			Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Seq: 8, NewTokens: 16, Precision: costmodel.BF16True,
		}, devices, backendtest.Runs(devices, 1, nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := executor.Run(context.Background(), cpu.New(), job, &executor.Settings{Steps: 1, Weights: weights.Random(graph, 1)})
		if err != nil {
			fmt.Println(err)
			return
		}
		all = append(all, result.Tokens[0])
	}
	fmt.Println(len(all[0]), "tokens, the same:", slices.Equal(all[0], all[1]))
	// Output:
	// 16 tokens, the same: true
}
