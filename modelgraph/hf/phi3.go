package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"phi3"},
		class:   "Phi3ForCausalLM",
		classes: causalClasses("Phi3", sequenceClassification, tokenClassification),
		unread:  []string{"attention_bias", "mlp_bias", "lm_head_bias", "full_attn_mod", "interpolate_factor"},
		build: func(b *builder, c *config, class string) {
			phi3(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// phi3 reads a Phi3Config (configuration_phi3.py): a llama whose q, k, v and
// whose gate and up are one matrix each.
func phi3(c *config) *decoder {
	h := c.pos(3072, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 32})
	a.fused = true
	a.window = window(c, 0)
	mlp := gatedMLP(c, h, 8192, "silu")
	mlp.fused = true
	return &decoder{
		hidden: h, vocab: c.pos(32064, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(partialRotary(c, a.headDim)),
	}
}

// partialRotary is the part of a head that turns: partial_rotary_factor of
// it. The factor inside rope_scaling or rope_parameters wins over the one
// beside them (Phi3Config.convert_rope_params_to_dict).
func partialRotary(c *config, headDim int64) int64 {
	rope := c.sub(c.pick([]string{"rope_scaling", "rope_parameters"}))
	f := rope.float(c.float(1, "partial_rotary_factor"), "partial_rotary_factor")
	if !(f > 0 && f <= 1) {
		c.fail("partial_rotary_factor", "%v is not a share (more than 0, 1 at most)", f)
		return headDim
	}
	return int64(float64(headDim) * f)
}
