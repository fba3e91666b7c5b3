package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types:   []string{"qwen3_moe"},
		class:   "Qwen3MoeForCausalLM",
		classes: causalClasses("Qwen3Moe", sequenceClassification, tokenClassification, questionAnswering),
		unread:  []string{"norm_topk_prob", "max_window_layers", "shared_expert_intermediate_size"},
		build: func(modules *builder, cfg *config, class string) {
			qwen3MoE(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen3MoE reads a Qwen3MoeConfig (configuration_qwen3_moe.py). Its window,
// if used, is every layer's.
func qwen3MoE(cfg *config) *decoder {
	hidden := cfg.pos(2048, "hidden_size")
	attn := qwen3Attention(cfg, hidden, headDefaults{q: 32, kv: 4})
	attn.window = qwenWindow(cfg)
	return &decoder{
		hidden: hidden, vocab: cfg.pos(151936, "vocab_size"), layers: cfg.count(24, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return attn.part() },
		ffn:       qwen3MoEBlocks(cfg, hidden),
		rotary:    rotary(attn.headDim),
	}
}

// qwen3MoEBlocks has experts in every decoder_sparse_step-th layer that
// mlp_only_layers does not name (modeling_qwen3_moe.py:
// Qwen3MoeDecoderLayer). num_local_experts, the attribute behind num_experts,
// wins where both are there.
func qwen3MoEBlocks(cfg *config, hidden int64) func(int64) part {
	dense := gatedMLP(cfg, hidden, 6144, "silu")
	experts := routed(cfg, moe{
		dim: hidden, hidden: cfg.pos(768, "moe_intermediate_size"),
		experts: cfg.dim(128, "num_local_experts", "num_experts"), activation: dense.activation,
	}, 8)
	step := cfg.pos(1, "decoder_sparse_step")
	only := cfg.dims("mlp_only_layers")
	return func(i int64) part {
		if experts.experts == 0 || (i+1)%step != 0 || slices.Contains(only, i) {
			return dense.part()
		}
		return experts.part()
	}
}
