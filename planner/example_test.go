package planner_test

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// A trainer describes its model in code, says how it trains, and asks where
// each block goes.
func ExampleSolve() {
	const dim, vocab = 1024, 32000
	table := []modelgraph.Tensor{{Name: "weight", Shape: []int64{vocab, dim}, DType: modelgraph.BF16}}
	layers := []modelgraph.Layer{{Name: "embed", Op: modelgraph.Embedding{Vocab: vocab, Dim: dim}, Params: table}}
	for i := range 24 {
		layers = append(layers, modelgraph.Layer{
			Name: fmt.Sprintf("blocks.%d", i), Op: modelgraph.MLP{Dim: dim, Hidden: 4 * dim},
			Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{8 * dim, dim}, DType: modelgraph.BF16}},
		})
	}
	layers = append(layers, modelgraph.Layer{Name: "head", Op: modelgraph.Head{Vocab: vocab, Dim: dim}, Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{vocab, dim}, DType: modelgraph.BF16}}})
	graph, err := modelgraph.New("mine", layers, [][]string{{"embed.weight", "head.weight"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	work, _ := estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Batch: 8, Seq: 512, Optimizer: costmodel.AdamW})
	costs, _ := estimate.Table(graph, work)
	gpus := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 8 << 30}, {CapacityBytes: 8 << 30}, {CapacityBytes: 8 << 30}}}
	plan, err := planner.Solve(context.Background(), planner.Problem{Graph: graph, Costs: costs, Topology: gpus}, planner.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, stage := range plan.Map.Stages(graph) {
		fmt.Printf("GPU %d: %d units from %s on\n", stage.Device, len(stage.Units), stage.Units[0])
	}
	fmt.Println(plan.Status)
	// Output:
	// GPU 1: 1 units from embed on
	// GPU 0: 10 units from blocks.0 on
	// GPU 2: 14 units from blocks.10 on
	// GPU 1: 1 units from head on
	// optimal
}
