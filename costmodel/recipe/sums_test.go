package recipe_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestSums: bf16 heads of 64, 80, 96, 128 and 256 values have sums for the gradients of queries: those of a
// block, and a number more. Other types and widths, and scores with a soft cap, have none.
func TestSums(t *testing.T) {
	for _, test := range []struct {
		model         string
		precision     costmodel.Precision
		sequences     int64
		rows, columns int64
		cap           float64
		dim           int64 // instead of the model's
	}{
		{"llama-3.2-1b", costmodel.BF16True, 4, 4 * 32 * 3, 8193, 0, 0}, // 300 rows are 3 blocks of 128
		{"llama-3.1-8b", costmodel.BF16True, 1, 32 * 5, 8193, 0, 0},     // and 5 of 64
		{"llama-3.2-1b", costmodel.FP32True, 4, 0, 0, 0, 0},
		{"llama-3.2-1b", costmodel.BF16True, 4, 0, 0, 50, 0},
		{"phi-3-mini", costmodel.BF16True, 4, 4 * 32 * 5, 6145, 0, 0}, // 96 values
		{"gemma-2b", costmodel.BF16True, 1, 8 * 5, 16385, 0, 0},       // 256 values
		{"gpt2-xl", costmodel.BF16True, 1, 20 * 5, 5121, 0, 80},
		{"gpt2-xl", costmodel.BF16True, 1, 0, 0, 0, 32},
	} {
		graph := builtIn(t, test.model)
		for i := range graph.Layers {
			if op, ok := graph.Layers[i].Op.(modelgraph.Attention); ok {
				op.ScoreCap = test.cap
				dim := cmp.Or(test.dim, op.HeadDim)
				op.Heads, op.KVHeads, op.HeadDim = op.Heads*op.HeadDim/dim, op.KVHeads*op.HeadDim/dim, dim
				graph.Layers[i].Op = op
			}
		}
		model := of(t, graph, costmodel.Workload{Mode: costmodel.Train, Batch: test.sequences, MicroBatches: 1, Seq: 300, Precision: test.precision, Optimizer: costmodel.AdamW})
		var tensors []recipe.Tensor
		for i := range model.Units {
			tensors = append(tensors, model.Units[i].Code.Tensors...)
		}
		i := slices.IndexFunc(tensors, func(tensor recipe.Tensor) bool { return tensor.Name == "attention.sums" })
		switch {
		case i < 0 && test.rows > 0, i >= 0 && (tensors[i].Rows != test.rows || tensors[i].Columns != test.columns):
			t.Errorf("%s in %v: tensor %d of %d is not %d × %d", test.model, test.precision, i, len(tensors), test.rows, test.columns)
		}
	}
}

// TestMovedSets: neighbours whose tensors move to the host have three sets of memory in turn, and others
// two. Blocks that do not move have none.
func TestMovedSets(t *testing.T) {
	for blocks, sets := range map[string]int64{costmodel.OffloadAll: 3, "0,2-3": 3, "0,2,4": 2, "": 0} {
		workload := costmodel.Workload{Mode: costmodel.Train, Batch: 2, MicroBatches: 2, Seq: 8, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, OffloadActivations: blocks}
		model := of(t, builtIn(t, "llama-3.2-1b"), workload)
		var most int64
		for i := range model.Units {
			most = max(most, model.Units[i].Moved)
		}
		if most != sets {
			t.Errorf("%q: %d sets, want %d", blocks, most, sets)
		}
	}
}
