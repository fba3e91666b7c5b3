package recipe_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// BenchmarkOf writes the code of Llama 3.1 405B: 129 units, 5 of them different.
func BenchmarkOf(b *testing.B) {
	graph, err := load.Model("llama-3.1-405b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		b.Fatal(err)
	}
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 64, MicroBatches: 64, Seq: 4096, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	for b.Loop() {
		if _, err := recipe.Of(graph, &workload); err != nil {
			b.Fatal(err)
		}
	}
}
