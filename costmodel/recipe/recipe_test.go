package recipe_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestSharesCode: equal blocks have one code.
func TestSharesCode(t *testing.T) {
	graph := fixtures.Must(load.Model("llama-3.1-405b", load.Options{BuiltIn: fixtures.Models()}))(t)
	model := fixtures.Must(recipe.Of(graph, &costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 8, Seq: 2048, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}))(t)
	codes := make(map[*recipe.Code]bool)
	for i := range model.Units {
		codes[model.Units[i].Code] = true
	}
	if len(codes) != 5 { // embedding, block, norm, rotary, head
		t.Errorf("%d codes of %d units, want 5", len(codes), len(model.Units))
	}
}
