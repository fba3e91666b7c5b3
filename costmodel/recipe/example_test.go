package recipe_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// A block of Llama 3.1 8B keeps 94,344 bytes a token from forward to backward.
func Example() {
	graph, err := load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		panic(err)
	}
	model, err := recipe.Of(graph, &costmodel.Workload{
		Mode: costmodel.Train, Batch: 16, MicroBatches: 8, Seq: 2048,
		Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone,
	})
	if err != nil {
		panic(err)
	}
	block := &model.Units[1]
	fmt.Println(block.Name, (block.Input+block.Saved)/(2*2048), "bytes a token")
	fmt.Println(block.Code.Lines()[len(block.Code.Tensors)+5])
	// Output:
	// model.layers.0 94344 bytes a token
	// forward attention sequences=2 heads=32 kv=8 dim=128 seq=2048 causal=1 scale=0.08838834764831843 : q=q k=k v=v >y=attention >lse=lse
}
