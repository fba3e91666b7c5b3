package ops_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// blockConfigs are models of two layers of the dimensions of
// measured/how/measure_layers.py.
var blockConfigs = map[string]string{
	"llama-3.1-8b": `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 2, "num_attention_heads": 32,
		"num_key_value_heads": 8, "vocab_size": 128256}`,
	"qwen2.5-3b": `{"model_type": "qwen2", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 2, "num_attention_heads": 16,
		"num_key_value_heads": 2, "vocab_size": 151936}`,
	"gemma-2b": `{"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 2, "num_attention_heads": 8,
		"num_key_value_heads": 1, "head_dim": 256, "vocab_size": 257152}`,
	"qwen3-8b": `{"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 2, "num_attention_heads": 32,
		"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}`,
	"mixtral-8x7b": `{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 2, "num_attention_heads": 32,
		"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000}`,
}

// headDims are the widths of a head, for the copy of cosines and sines.
var headDims = map[string]int64{"llama-3.1-8b": 128, "qwen2.5-3b": 128, "gemma-2b": 256, "qwen3-8b": 128, "mixtral-8x7b": 128}

// TestMeasuredBlocks holds what a decoder block keeps for backward, in bytes a
// token, to the measured rows of layers.json (torch 2.11, Transformers 5.17,
// one H200; torch-memory.md §1). The rows were taken on one GPU, where all
// layers share the rotary's cosines and sines; the model of costs counts the
// copy that each layer gets on every other GPU, so it is taken off first.
func TestMeasuredBlocks(t *testing.T) {
	const tolerance = .01 // first order; most rows are exact to some bytes a token
	for _, c := range []struct {
		model      string
		batch, seq int64
		mode       string
		want       float64
	}{
		{"llama-3.1-8b", 2, 2048, "bf16", 200840.25},
		{"llama-3.1-8b", 1, 8192, "bf16", 200840.125},
		{"llama-3.1-8b", 2, 2048, "amp", 348296.25},
		{"llama-3.1-8b", 2, 2048, "ckpt", 8192},
		{"qwen2.5-3b", 2, 2048, "bf16", 130120.25},
		{"qwen2.5-3b", 1, 8192, "bf16", 130120.125},
		{"qwen2.5-3b", 2, 2048, "amp", 188232.25},
		{"qwen2.5-3b", 2, 2048, "ckpt", 4096},
		{"gemma-2b", 2, 2048, "bf16", 181292.25},
		{"gemma-2b", 1, 8192, "bf16", 181290.125},
		{"gemma-2b", 2, 2048, "amp", 247340.25},
		{"gemma-2b", 2, 2048, "ckpt", 4096},
		{"qwen3-8b", 2, 2048, "bf16", 215336.25},
		{"qwen3-8b", 1, 8192, "bf16", 215336.125},
		{"qwen3-8b", 2, 2048, "amp", 350504.25},
		{"qwen3-8b", 2, 2048, "ckpt", 8192},
		{"mixtral-8x7b", 2, 2048, "bf16", 348414.375},
		{"mixtral-8x7b", 1, 8192, "bf16", 348414.1875},
		{"mixtral-8x7b", 2, 2048, "amp", 663822.375},
		{"mixtral-8x7b", 2, 2048, "ckpt", 8192},
	} {
		t.Run(fmt.Sprintf("%s/%dx%d/%s", c.model, c.batch, c.seq, c.mode), func(t *testing.T) {
			saved, stream := blockBytes(t, c.model, c.batch, c.seq, c.mode)
			if c.mode != "ckpt" {
				rotaryCopy := 2 * stream * c.seq * headDims[c.model]
				saved -= rotaryCopy
			}
			got := float64(saved) / float64(c.batch*c.seq)
			off := got/c.want - 1
			t.Logf("%.2f bytes a token, measured %.2f, %+.2f %%", got, c.want, 100*off)
			if math.Abs(off) > tolerance {
				t.Errorf("off by %+.2f %%", 100*off)
			}
		})
	}
}

// blockBytes is what the first block of a model keeps after forward (its
// output, where the second is recomputed from it), and the size of an element
// of its residual stream.
func blockBytes(t *testing.T, model string, batch, seq int64, mode string) (saved, stream int64) {
	t.Helper()
	g, err := hf.FromConfig("config.json", []byte(blockConfigs[model]))
	if err != nil {
		t.Fatal(err)
	}
	w := costmodel.Workload{
		Mode: costmodel.Train, Batch: batch, MicroBatches: 1, Seq: seq, TargetSeq: seq,
		Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
	}
	switch mode {
	case "amp":
		w.Precision = costmodel.BF16Mixed
	case "ckpt":
		w.Recompute = costmodel.RecomputeFull
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	u, ok := g.UnitIndex("model.layers.0")
	if !ok {
		t.Fatal("no first block")
	}
	return table.Units[u].ActivationBytes(), w.Precision.StreamBytes()
}
