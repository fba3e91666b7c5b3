package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
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
	vocab := cfg.pos(32064, "vocab_size")
	model := &decoder{
		hidden: hidden, vocab: vocab, layers: cfg.count(32, "num_hidden_layers"),
		norm: modelgraph.RMSNorm, epsilon: cfg.number(1e-5, "rms_norm_eps"), padding: cfg.padding(32001, vocab),
		attention: func(int64) part { return attn.part() },
		ffn:       func(int64) part { return mlp.part() },
	}
	width := partialRotary(cfg, attn.headDim)
	attn.rotation, model.rotary = phi3Rotation(cfg, attn.headDim, width), rotary(width)
	return model
}

// phi3Rotation is that of Phi3Config, which has partial rotations without
// scaling too, and of all scalings one: "su" and "yarn" are its older names.
func phi3Rotation(cfg *config, headDim, width int64) modelgraph.Rotation {
	rotation := cfg.rotation(headDim, 4096)
	switch rotation.Type {
	case "":
		if width != headDim {
			rotation.Width = width
		}
	case "su", "yarn":
		rotation = modelgraph.Rotation{Type: "longrope", Base: rotation.Base}
	case "longrope":
	default:
		cfg.unsaid("rope type", "%q is not one of Phi-3's (longrope)", rotation.Type)
	}
	return rotation
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
