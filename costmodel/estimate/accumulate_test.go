package estimate

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestAccumulate: with gradients of earlier micro-batches, all exist throughout. A matrix's new one
// is dropped at once, and a tied parameter's waits from the head to the embedding.
func TestAccumulate(t *testing.T) {
	g, err := hf.FromConfig("config.json", []byte(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
		"num_attention_heads": 4, "vocab_size": 1000, "tie_word_embeddings": true}`))
	if err != nil {
		t.Fatal(err)
	}
	units := func(microBatches int64) []costmodel.Unit {
		w := fixtures.Must(Resolve(g, costmodel.Workload{Mode: costmodel.Train, Batch: microBatches, MicroBatches: microBatches, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}))(t)
		table := fixtures.Must(Table(g, w))(t)
		return table.Units
	}
	once, more := units(1), units(4)
	var used, left int64
	for u := range more {
		used += more[u].ResidentGrads
		left += timeline.Of(&more[u]).Grads
		if first, again := timeline.Of(&once[u]), timeline.Of(&more[u]); again.Backward > first.Backward+1000*64*2 {
			t.Errorf("%s: %d with gradients, %d without", more[u].Name, again.Backward, first.Backward)
		}
	}
	if used != 2*g.ParamCount() || left != 0 {
		t.Errorf("%d B of gradients held, %d left; want %d and 0", used, left, 2*g.ParamCount())
	}
	head, _ := UnitNamed(g, "lm_head")
	embed, _ := UnitNamed(g, "model.embed_tokens")
	if h, e := more[head].Layers[0].Grads, more[embed].Layers[0].Grads; h != 1000*64*2 || e != -h {
		t.Errorf("the tied gradient: %d waits, %d goes", h, e)
	}
	block, _ := UnitNamed(g, "model.layers.0")
	for i := range more[block].Layers {
		a, b := &more[block].Layers[i], &once[block].Layers[i]
		if a.Backward > b.Backward || a.Backward != b.AccumPeak {
			t.Errorf("%s: %d with gradients, %d without, %d said", a.Layer, a.Backward, b.Backward, b.AccumPeak)
		}
	}
}
