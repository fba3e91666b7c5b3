package estimate_test

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// small is a model of two blocks with untied embeddings, in bf16.
func small() *modelgraph.Graph {
	builder := modelgraph.Builder{Name: "small", DType: modelgraph.BF16}
	builder.Add("embed", modelgraph.Embedding{Vocab: 1000, Dim: 64})
	builder.Decoder("blocks", 2, modelgraph.RMSNorm,
		modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 4, HeadDim: 16, Rope: true}, modelgraph.MLP{Dim: 64, Hidden: 256, Gated: true, Activation: "silu"})
	builder.Add("head", modelgraph.Head{Dim: 64, Vocab: 1000})
	graph, err := builder.Build()
	if err != nil {
		panic(err)
	}
	return graph
}

// What one GPU holds of each unit in training: all of it under DDP, a fourth under FSDP over four GPUs.
func ExampleTable() {
	graph := small()
	for _, strategy := range []costmodel.Strategy{costmodel.DDP, costmodel.FSDP} {
		workload, err := estimate.Resolve(graph, costmodel.Workload{
			Mode: costmodel.Train, Strategy: strategy, World: 4, Batch: 2, Seq: 128, Optimizer: costmodel.AdamW,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		table, err := estimate.Table(graph, workload)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(workload.Strategy, workload.Runtime, workload.Precision)
		for i := range table.Units {
			unit := &table.Units[i]
			fmt.Println(" ", unit.Name, unit.Params, "B of weights,", unit.OptimizerState, "B of states")
		}
	}
	// Output:
	// ddp torch bf16-true
	//   embed 128000 B of weights, 256000 B of states
	//   blocks.0 131328 B of weights, 262656 B of states
	//   blocks.1 131328 B of weights, 262656 B of states
	//   head 128000 B of weights, 256000 B of states
	// fsdp torch bf16-true
	//   embed 32000 B of weights, 64000 B of states
	//   blocks.0 32832 B of weights, 65664 B of states
	//   blocks.1 32832 B of weights, 65664 B of states
	//   head 32000 B of weights, 64000 B of states
}

// A fault names the field, its value and what works.
func ExampleResolve() {
	_, err := estimate.Resolve(small(), costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DDP, Runtime: value.DeepSpeed, World: 4})
	var fault *costmodel.FieldError
	if errors.As(err, &fault) {
		fmt.Println(fault.Field, fault.Value)
	}
	fmt.Println(err)
	// Output:
	// runtime deepspeed
	// runtime: deepspeed does not run strategy=ddp; choose torch or lightning
}
