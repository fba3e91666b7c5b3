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
		build: func(b *builder, c *config, class string) {
			gemma3Text(c).causal(b, c, class, c.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma3Text reads a Gemma3TextConfig (configuration_gemma3.py): a Gemma 2
// with norms on q and k, no caps by default, and windows in all but every
// sliding_window_pattern-th layer.
func gemma3Text(c *config) *decoder {
	d, a := gemmaSandwich(c, 262208)
	a.qkNorm = modelgraph.GemmaRMSNorm
	a.softCap = c.float(0, "attn_logit_softcapping") != 0
	w := window(c, 4096)
	if a.bidirectional {
		w = w/2 + 1 // the window is on both sides (Gemma3TextConfig)
	}
	pattern := c.pos(6, "sliding_window_pattern")
	types := layerTypes(c, d.layers, func(i int64) bool { return (i+1)%pattern != 0 })
	d.attention = a.windows(types, w)
	d.softCap = c.has("final_logit_softcapping") && c.float(0, "final_logit_softcapping") != 0
	d.rotary = typedRotary(a.headDim, types)
	return d
}

// typedRotary has frequencies for each type of layer that the model has
// (modeling_gemma3.py: Gemma3RotaryEmbedding).
func typedRotary(headDim int64, types []string) modelgraph.Layer {
	l := modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}}
	for _, t := range []string{fullAttention, slidingAttention} {
		if !slices.Contains(types, t) {
			continue
		}
		for _, f := range rotary(headDim).Buffers {
			f.Name = t + "_" + f.Name
			l.Buffers = append(l.Buffers, f)
		}
	}
	return l
}
