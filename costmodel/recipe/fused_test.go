package recipe_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestFused: the operations of a decode step and the kernels that they replace, as the CUDA backend
// recognizes them (TestRecognize in executor/cuda/internal/kernel).
func TestFused(t *testing.T) {
	for _, test := range []struct {
		model                         string
		sequences, seq                int64
		precision                     costmodel.Precision
		fused, operations, rest, rows float64 // of a step
	}{
		// 5 a block: queries, keys and values; attention; its output; gate; down. The head has two. The
		// lookup of ids is no operation, nor is the last norm, which is a unit of its own.
		{model: "llama-3.2-1b", sequences: 1, seq: 128, precision: costmodel.BF16True, fused: 16*13 + 2, operations: 16*5 + 2, rest: 2, rows: 1},
		// More positions than a span: parts of attention are joined, unless sequences are many.
		{model: "llama-3.2-1b", sequences: 1, seq: 512, precision: costmodel.BF16True, fused: 16*14 + 2, operations: 16*6 + 2, rest: 2, rows: 1},
		{model: "llama-3.2-1b", sequences: 16, seq: 512, precision: costmodel.BF16True, fused: 16*14 + 2, operations: 16*5 + 2, rest: 2, rows: 16},
		{model: "llama-3.2-1b", sequences: 17, seq: 128, precision: costmodel.BF16True, rest: 16*13 + 4},
		{model: "llama-3.2-1b", sequences: 1, seq: 128, precision: costmodel.FP32True, rest: 16*13 + 4},
		// 16 heads of a key head are two groups, so that fewer sequences are many.
		{model: "llama-3.1-405b", sequences: 4, seq: 512, precision: costmodel.BF16True, fused: 126*14 + 2, operations: 126*6 + 2, rest: 2, rows: 4},
		{model: "llama-3.1-405b", sequences: 5, seq: 512, precision: costmodel.BF16True, fused: 126*14 + 2, operations: 126*5 + 2, rest: 2, rows: 5},
		// Attention with wider heads stays a kernel.
		{model: "gemma-2b", sequences: 1, seq: 128, precision: costmodel.BF16True, fused: 18*12 + 2, operations: 18*4 + 2, rest: 18 + 2, rows: 1},
		// A norm with a mean and a gate of one product alone stay kernels.
		{model: "gpt2", sequences: 1, seq: 128, precision: costmodel.BF16True, fused: 12*5 + 2, operations: 12*5 + 2, rest: 12*4 + 3, rows: 1},
	} {
		graph, err := load.Model(test.model, load.Options{BuiltIn: fixtures.Models()})
		if err != nil {
			t.Fatal(err)
		}
		model, err := recipe.Of(graph, &costmodel.Workload{Mode: costmodel.Infer, Batch: test.sequences, MicroBatches: 1, Seq: test.seq, NewTokens: 128, Precision: test.precision})
		if err != nil {
			t.Fatal(err)
		}
		var sum costmodel.Pass
		for i := range model.Units {
			work := &model.Units[i].Code.Decode.Work
			sum.Kernels, sum.Fused, sum.Operations, sum.Rows = sum.Kernels+work.Kernels, sum.Fused+work.Fused, sum.Operations+work.Operations, max(sum.Rows, work.Rows)
		}
		if sum.Fused != test.fused || sum.Operations != test.operations || sum.Kernels-sum.Fused != test.rest || sum.Rows != test.rows {
			t.Errorf("%+v: %+v", test, sum)
		}
	}
}
