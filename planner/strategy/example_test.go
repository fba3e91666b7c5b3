package strategy_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// trained is a model of 8 billion parameters, trained on 4 GPUs of the catalogue.
func trained(gpu string) planner.Problem {
	graph, err := load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models(), Env: func(string) string { return "" }})
	if err != nil {
		panic(err)
	}
	entry, err := catalogue.Find(gpu)
	if err != nil {
		panic(err)
	}
	device := entry.Device(costmodel.Train)
	return planner.Problem{
		Graph: graph, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{device}, 4)},
		Workload: costmodel.Workload{Mode: costmodel.Train, Batch: 2, Seq: 2048, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone},
	}
}

// Every strategy side by side, the fastest that fits first.
func ExampleRows() {
	rows, err := strategy.Rows(context.Background(), trained("h100-80gb"), strategy.Options{})
	if err != nil {
		panic(err)
	}
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Refused != nil:
			fmt.Printf("%s: refused\n", row.Workload.Strategy)
		default:
			fmt.Printf("%s (%s) fits: %v\n", row.Workload.Strategy, row.Workload.Runtime, row.Fits)
		}
	}
	// Output:
	// fsdp (torch) fits: true
	// zero1 (deepspeed) fits: true
	// zero2 (deepspeed) fits: true
	// zero3 (deepspeed) fits: true
	// hsdp (torch) fits: true
	// pipeline (torch) fits: true
	// pipeline (torch) fits: true
	// device-map (accelerate) fits: true
	// ddp (torch) fits: false
	// ddp (lightning) fits: false
	// pipeline: refused
}

// Settings over the request's that would make a plan fit.
func ExampleSmallest() {
	problem := trained("h100-80gb")
	problem.Workload.Strategy = costmodel.DDP
	changes := strategy.Smallest(context.Background(), problem, strategy.Options{})
	for i := range changes {
		fmt.Println(changes[i].Set, changes[i].Notes)
	}
	// Output:
	// [recompute=full] []
	// [optimizer=adamw-8bit] []
	// [lora_rank=16 lora_targets=all-linear] [the model itself frozen]
	// [batch=1] []
	// [seq=1024] []
	// [strategy=fsdp] []
	// [offload=cpu strategy=zero3] [slower, 149.58 GiB of host memory]
	// [gpu=h200-141gb] []
}
