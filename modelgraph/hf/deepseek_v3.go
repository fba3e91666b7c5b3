package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"deepseek_v3"},
		class:   "DeepseekV3ForCausalLM",
		classes: causalClasses("DeepseekV3", sequenceClassification, tokenClassification),
		unread: []string{
			"ep_size", "scoring_func", "topk_method", "seq_aux", "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor",
			"num_nextn_predict_layers", "num_mtp_layers", "qk_head_dim", "head_dim",
		},
		build: func(modules *builder, cfg *config, class string) {
			deepseekV3(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// deepseekV3 reads a DeepseekV3Config (configuration_deepseek_v3.py). The
// layers for multi-token prediction are no part of the module.
// moe_layer_freq is read by the checkpoints' own code alone: other than 1 it
// is refused.
func deepseekV3(cfg *config) *decoder {
	hidden := cfg.pos(7168, "hidden_size")
	attn := latentAttention(cfg, hidden)
	dense := gatedMLP(cfg, hidden, 18432, "silu")
	experts := deepseekExperts(cfg, hidden, dense.activation)
	first := cfg.dim(3, "first_k_dense_replace")
	cfg.harmlessAs("moe_layer_freq", "1")
	return &decoder{
		hidden: hidden, vocab: cfg.pos(129280, "vocab_size"), layers: cfg.count(61, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return attn.part() },
		ffn: func(i int64) part {
			if i < first {
				return dense.part()
			}
			return experts.deepseek()
		},
		rotary: rotary(attn.rope),
	}
}

// deepseekExperts reads the experts; n_shared_experts of them, side by side,
// take every token.
func deepseekExperts(cfg *config, hidden int64, activation string) moe {
	experts := moe{
		fp32Routing: true,
		dim:         hidden, hidden: cfg.pos(2048, "moe_intermediate_size"),
		experts: cfg.pos(256, "num_local_experts", "n_routed_experts"), activation: activation,
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.dim(1, "n_shared_experts"))
	return routed(cfg, experts, 8)
}

// deepseek is DeepseekV3MoE. The router's correction
// bias is a buffer that checkpoints hold, fp32 whatever the model's type
// (_keep_in_fp32_modules_strict).
func (experts moe) deepseek() part {
	p := experts.part()
	if experts.shared == 0 { // a module of empty matrices
		p.params = join(p.params, linearParams("shared_experts.gate_proj", experts.dim, 0, false),
			linearParams("shared_experts.up_proj", experts.dim, 0, false), linearParams("shared_experts.down_proj", 0, experts.dim, false))
	}
	p.buffers = []modelgraph.Tensor{buffer("gate.e_score_correction_bias", modelgraph.F32, experts.experts)}
	return p
}
