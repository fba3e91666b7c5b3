package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// TestGeneration: the cache after the prompt and after the last token, and
// the embedding's output, which the body holds.
func TestGeneration(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", `+tiny+`}`)
	w := costmodel.Workload{Mode: costmodel.Infer, Batch: 2, Seq: 16, NewTokens: 8, Precision: costmodel.BF16True}
	tab := table(t, g, w)
	u, _ := estimate.UnitNamed(g, "model.layers.0")
	const token = 2 * 2 * 64 * 2 // keys and values of two sequences in bf16
	if r := timeline.Of(&tab.Units[u]); r.Saved != 16*token || r.CacheGrowth != 8*token || r.HeadPeak != 24*token/2 || !r.Products {
		t.Errorf("%+v", r)
	}
	u, _ = estimate.UnitNamed(g, "model.embed_tokens")
	if r := timeline.Of(&tab.Units[u]); r.UntilBodyEnd != 2*2*16*64 || r.Saved != 0 || r.Products {
		t.Errorf("%+v", r)
	}
	u, _ = estimate.UnitNamed(g, "lm_head")
	if r := timeline.Of(&tab.Units[u]); r.Forward != 0 || r.HeadPeak != 2*2*(1000+64) {
		t.Errorf("%+v", r)
	}
}

// TestHeadAlone: the head keeps the last norm's result.
func TestHeadAlone(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", `+tiny+`}`)
	tab := table(t, g, costmodel.Workload{Mode: costmodel.Train, Batch: 2, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW})
	const n, h, v = 2 * 16, 64, 1000
	norm, _ := estimate.UnitNamed(g, "model.norm")
	head, _ := estimate.UnitNamed(g, "lm_head")
	if got := timeline.Of(&tab.Units[norm]).Saved; got != (4+2)*h*n+4*n {
		t.Errorf("the norm keeps %d", got)
	}
	if got := timeline.Of(&tab.Units[head]).Saved; got != 2*h*n+4*n*v+8*n {
		t.Errorf("the head keeps %d", got)
	}
}
