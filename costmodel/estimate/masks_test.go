package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestMasksSaved: recomputed blocks keep one mask of each kind at the embedding, and none without
// checkpoints or in a pipeline.
func TestMasksSaved(t *testing.T) {
	g := fromConfig(t, `{"model_type": "gemma2", "transformers_version": "5.17.0", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "sliding_window": 128}`)
	const b, length = 2, 128
	for _, c := range []struct {
		name string
		w    costmodel.Workload
		want int64
	}{
		{"checkpoints", costmodel.Workload{Recompute: costmodel.RecomputeFull}, length * length},
		{"a shorter sequence", costmodel.Workload{Recompute: costmodel.RecomputeFull, Seq: length - 1}, 0},
		{"none", costmodel.Workload{}, 0},
		{"eager", costmodel.Workload{Recompute: costmodel.RecomputeFull, Attention: value.EagerAttention}, 2 * 2 * b * length * length},
		{"flash", costmodel.Workload{Recompute: costmodel.RecomputeFull, Attention: value.FlashAttention}, 0},
		{"FSDP2", costmodel.Workload{Recompute: costmodel.RecomputeFull, Strategy: costmodel.FSDP, World: 2}, length * length},
		{"a pipeline", costmodel.Workload{Recompute: costmodel.RecomputeFull, Strategy: costmodel.Pipeline, World: 2}, 0},
	} {
		c.w.Mode, c.w.Batch, c.w.Optimizer, c.w.Precision = costmodel.Train, b, costmodel.AdamW, costmodel.BF16True
		if c.w.Seq == 0 {
			c.w.Seq = length
		}
		w := fixtures.Must(estimate.Resolve(g, c.w))(t)
		table := fixtures.Must(estimate.Table(g, w))(t)
		indices := 8 * b * w.Seq
		if got := table.Units[0].Layers[0].Saved - indices; got != c.want {
			t.Errorf("%s: %d B of masks are held, want %d", c.name, got, c.want)
		}
	}
}
