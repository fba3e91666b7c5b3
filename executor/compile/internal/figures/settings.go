package main

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// kind is the workload of a program, without the number of micro-batches. The batch is that of one
// micro-batch.
type kind struct {
	name     string
	workload costmodel.Workload
}

// kinds are all ways to run a model.
var kinds = []kind{
	{"train", costmodel.Workload{Mode: costmodel.Train}},
	{"train, recompute", costmodel.Workload{Mode: costmodel.Train, Recompute: costmodel.RecomputeFull}},
	{"infer", costmodel.Workload{Mode: costmodel.Infer}},
	{"generate", costmodel.Workload{Mode: costmodel.Infer, NewTokens: 2}},
}

// orders are the schedules, and a device map.
var orders = []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, ""}

// precisions and optimizers alternate with the number of micro-batches.
var (
	precisions = []costmodel.Precision{costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True}
	optimizers = []string{costmodel.AdamW, costmodel.SGD}
)

// tokens is the length of a sequence.
const tokens = 512

// set makes the table of a model for a kind of work under an order.
func (kind *kind) set(graph *modelgraph.Graph, order costmodel.ScheduleKind, microBatches, devices int) (*setting, error) {
	workload := kind.workload
	workload.Runtime, workload.Strategy, workload.Schedule = costmodel.Devmap, costmodel.Pipeline, order
	if order == "" {
		workload.Strategy = costmodel.DeviceMap
	}
	if workload.Precision == "" {
		workload.Precision = precisions[microBatches%len(precisions)]
	}
	if workload.Mode == costmodel.Train && workload.Optimizer == "" {
		workload.Optimizer = optimizers[microBatches%len(optimizers)]
	}
	workload.MicroBatches, workload.Batch = int64(microBatches), int64(microBatches)*max(1, workload.Batch)
	if workload.Seq == 0 {
		workload.Seq = tokens
	}
	if order != "" {
		workload.World = int64(devices)
	}
	if order == costmodel.Interleaved {
		workload.VirtualStages = chunks
	}
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, err
	}
	found, err := catalogue.Find("h200-141gb")
	if err != nil {
		return nil, err
	}
	topology := &costmodel.Topology{}
	device := found.Device(workload.Mode)
	device.CapacityBytes = 1 << 40 // here every model fits
	for range devices {
		topology.Devices = append(topology.Devices, device)
	}
	return &setting{graph: graph, table: table, topology: topology, chain: timeline.NewRanks(table)}, nil
}

// chunks is how many runs of units an interleaved device has.
const chunks = 2

// cut spreads units over devices in the order of the model, in so many runs a device. The runs have
// equal lengths or, if random is not nil, random borders.
func cut(units, devices, runs int, random func(most int) int) devicemap.Map {
	stages := devices * runs
	borders := make([]int, stages+1)
	for stage := range borders {
		borders[stage] = stage * units / stages
	}
	for stage := 1; stage < stages && random != nil; stage++ {
		left := units - borders[stage-1] - (stages - stage) // a unit for each of the others
		borders[stage] = borders[stage-1] + 1 + random(min(left, 2*units/stages))
	}
	out := make(devicemap.Map, units)
	for stage := range stages {
		for unit := borders[stage]; unit < borders[stage+1]; unit++ {
			out[unit] = devicemap.Device(stage % devices)
		}
	}
	return out
}
