package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types:   []string{"gemma3_text"},
		class:   "Gemma3ForCausalLM",
		classes: []string{"Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3TextForSequenceClassification"},
		build: func(modules *builder, cfg *config, class string) {
			gemma3Text(cfg).causal(modules, cfg, class, cfg.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma3Text reads a Gemma3TextConfig (configuration_gemma3.py): a Gemma 2
// with norms on q and k, no caps by default, and windows in all but every
// sliding_window_pattern-th layer.
func gemma3Text(cfg *config) *decoder {
	d, attn := gemmaSandwich(cfg, 262208)
	attn.qkNorm = modelgraph.GemmaRMSNorm
	attn.softCap = cfg.float(0, "attn_logit_softcapping") != 0
	width := readWindow(cfg, 4096)
	if attn.bidirectional {
		width = width/2 + 1 // the window is on both sides (Gemma3TextConfig)
	}
	pattern := cfg.pos(6, "sliding_window_pattern")
	types := layerTypes(cfg, d.layers, func(i int64) bool { return (i+1)%pattern != 0 })
	d.attention = attn.windows(types, width)
	d.softCap = cfg.has("final_logit_softcapping") && cfg.float(0, "final_logit_softcapping") != 0
	d.rotary = typedRotary(attn.headDim, types)
	return d
}

// typedRotary has frequencies for each type of layer that the model has
// (modeling_gemma3.py: Gemma3RotaryEmbedding).
func typedRotary(headDim int64, types []string) modelgraph.Layer {
	layer := modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}}
	for _, kind := range []string{fullAttention, slidingAttention} {
		if !slices.Contains(types, kind) {
			continue
		}
		for _, f := range rotary(headDim).Buffers {
			f.Name = kind + "_" + f.Name
			layer.Buffers = append(layer.Buffers, f)
		}
	}
	return layer
}
