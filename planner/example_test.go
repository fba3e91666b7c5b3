package planner_test

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// A trainer describes its model in code and its training, and asks for the device of each block.
func ExamplePlan() {
	const width, vocab = 1024, 32000
	b := modelgraph.Builder{Name: "mine", DType: modelgraph.BF16}
	b.Add("embed", modelgraph.Embedding{Vocab: vocab, Dim: width})
	b.Decoder("blocks", 24, modelgraph.RMSNorm,
		modelgraph.Attention{Dim: width, Heads: 16, KVHeads: 4, HeadDim: 64, Rope: true},
		modelgraph.MLP{Dim: width, Hidden: 4096, Gated: true, Activation: "silu"})
	b.Add("norm", modelgraph.Norm{Dim: width})
	b.Add("head", modelgraph.Head{Dim: width, Vocab: vocab})
	b.Tie("embed.weight", "head.weight")
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	work := costmodel.Workload{Mode: costmodel.Train, Batch: 8, Seq: 512, Optimizer: costmodel.AdamW}
	gpus := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 8 << 30}, {CapacityBytes: 8 << 30}, {CapacityBytes: 8 << 30}}}
	plan, err := planner.Plan(context.Background(), graph, work, gpus)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, stage := range plan.Map.Stages(graph, "") {
		fmt.Printf("GPU %d: %d units from %s on\n", stage.Device, len(stage.Units), stage.Units[0])
	}
	fmt.Println(plan.Status)
	// Output:
	// GPU 0: 5 units from embed on
	// GPU 1: 10 units from blocks.4 on
	// GPU 2: 11 units from blocks.14 on
	// GPU 0: 1 units from head on
	// optimal
}

// Solve places measured units: the table is the caller's own.
func ExampleSolve() {
	var layers []modelgraph.Layer
	costs := &costmodel.Table{Workload: costmodel.Workload{Mode: costmodel.Load}, Additive: true}
	for i, bytes := range []int64{6, 3, 3, 4, 5, 3} {
		name := fmt.Sprintf("blocks.%d", i)
		layers = append(layers, modelgraph.Layer{Name: name})
		costs.Units = append(costs.Units, costmodel.Unit{Name: name, Params: bytes << 30})
	}
	graph, err := modelgraph.New("measured", layers, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	gpus := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 16 << 30}, {CapacityBytes: 16 << 30}}}
	solution, err := planner.Solve(context.Background(), planner.Problem{Graph: graph, Costs: costs, Topology: gpus}, planner.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(solution.Map, solution.Value, solution.Status)
	// Output:
	// [0 0 0 1 1 1] 0.75 optimal
}
