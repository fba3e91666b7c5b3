package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"phi3"},
		class:   "Phi3ForCausalLM",
		classes: causalClasses("Phi3", sequenceClassification, tokenClassification),
		unread:  []string{"attention_bias", "mlp_bias", "lm_head_bias", "full_attn_mod", "interpolate_factor"},
		build: func(modules *builder, cfg *config, class string) {
			phi3(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// phi3 reads a Phi3Config (configuration_phi3.py): a llama whose q, k, v and
// whose gate and up are one matrix each.
func phi3(cfg *config) *decoder {
	hidden := cfg.pos(3072, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 32})
	attn.fused = true
	attn.window = readWindow(cfg, 0)
	mlp := gatedMLP(cfg, hidden, 8192, "silu")
	mlp.fused = true
	return &decoder{
		hidden: hidden, vocab: cfg.pos(32064, "vocab_size"), layers: cfg.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return attn.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(partialRotary(cfg, attn.headDim)),
	}
}

// partialRotary is the part of a head that turns: partial_rotary_factor of
// it. The factor inside rope_scaling or rope_parameters wins over the one
// beside them (Phi3Config.convert_rope_params_to_dict).
func partialRotary(cfg *config, headDim int64) int64 {
	rope := cfg.sub(cfg.pick([]string{"rope_scaling", "rope_parameters"}))
	float := rope.float(cfg.float(1, "partial_rotary_factor"), "partial_rotary_factor")
	if !(float > 0 && float <= 1) {
		cfg.fail("partial_rotary_factor", "%v is not a share (more than 0, 1 at most)", float)
		return headDim
	}
	return int64(float64(headDim) * float)
}
