package main

import (
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// torchGiB is the measured peak memory of each of four H200 GPUs with torch.distributed.pipelining.
// The step trains llama-3.1-8b in bf16 under 1F1B, with 8 blocks a GPU and 16 sequences of 2048
// tokens in 8 micro-batches.
var torchGiB = []float64{42.1, 32.3, 26.1, 37.2}

// large prints the arenas of a model next to torch's memory, and how long a large program takes to
// compile.
func large(page *page, _ scope) error {
	graph, err := load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		return err
	}
	const devices, blocks = 4, 8
	train := kind{"train", costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Batch: 2, Seq: 2048}}
	set, err := train.set(graph, costmodel.OneFOneB, 8, devices)
	if err != nil {
		return err
	}
	placement := make(devicemap.Map, len(graph.Units))
	for unit := range placement {
		placement[unit] = devicemap.Device(min(max(0, unit-1)/blocks, devices-1)) // the embedding is the first unit
	}
	out, err := compile.Program(set.graph, set.table, set.topology, placement, nil)
	if err != nil {
		return err
	}
	page.printf("llama-3.1-8b, 16 x 2048 tokens, 8 micro-batches, 8 blocks a GPU, 1f1b, bf16-true, in GiB a GPU:\n")
	page.printf("arena          ")
	for _, device := range out.Devices {
		page.printf("%7.2f", float64(device.Arena)/(1<<30))
	}
	page.printf("\ntorch, measured")
	for _, measured := range torchGiB {
		page.printf("%7.1f", measured)
	}
	page.printf("\n\n")
	return compiled(page)
}

// compiled prints how long a large program takes to compile.
func compiled(page *page) error {
	graph, err := load.Model("llama-3.1-405b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		return err
	}
	const devices = 64
	train := kind{"train", costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16True, Seq: 2048}}
	set, err := train.set(graph, costmodel.OneFOneB, devices, devices)
	if err != nil {
		return err
	}
	start := time.Now()
	out, err := compile.Program(set.graph, set.table, set.topology, cut(len(graph.Units), devices, 1, nil), nil)
	if err != nil {
		return err
	}
	page.printf("llama-3.1-405b, %d devices, %d micro-batches: %d instructions compiled and checked in %.2f s\n", devices, devices, len(out.Instrs), time.Since(start).Seconds())
	return nil
}
