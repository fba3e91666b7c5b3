package modelgraph_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

// A model in code: the tensors of each layer follow from its operation.
func ExampleBuilder() {
	const width, vocab = 1024, 32000
	b := modelgraph.Builder{Name: "mine", DType: modelgraph.BF16}
	b.Add("embed", modelgraph.Embedding{Vocab: vocab, Dim: width})
	b.Decoder("blocks", 2, modelgraph.RMSNorm,
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
	for u, unit := range graph.Units {
		fmt.Println(u, unit.Name, unit.End-unit.First, "layers")
	}
	fmt.Println(graph.ParamCount(), "parameters, with one table for embedding and head")
	// Output:
	// 0 embed 1 layers
	// 1 blocks.0 4 layers
	// 2 blocks.1 4 layers
	// 3 norm 1 layers
	// 4 head 1 layers
	// 63181824 parameters, with one table for embedding and head
}

// A layer whose tensors are not those of its operation is refused.
func ExampleNew() {
	_, err := modelgraph.New("mine", []modelgraph.Layer{{
		Name: "head", Op: modelgraph.Head{Dim: 1024, Vocab: 32000},
		Params: []modelgraph.Tensor{{Name: "weight", Shape: []int64{32000, 512}, DType: modelgraph.BF16}},
	}}, nil)
	fmt.Println(err)
	// Output:
	// layers[0]: "head": op head of 1024 → 32000 has weights of 32768000 elements, but with "head.weight" [32000 512] there are 16384000: op and params are of different sizes
}
