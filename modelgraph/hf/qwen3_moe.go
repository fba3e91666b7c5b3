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
		build: func(b *builder, c *config, class string) {
			qwen3MoE(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen3MoE reads a Qwen3MoeConfig (configuration_qwen3_moe.py). Its window,
// if used, is every layer's.
func qwen3MoE(c *config) *decoder {
	h := c.pos(2048, "hidden_size")
	a := qwen3Attention(c, h, headDefaults{q: 32, kv: 4})
	a.window = qwenWindow(c)
	return &decoder{
		hidden: h, vocab: c.pos(151936, "vocab_size"), layers: c.count(24, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn:       qwen3MoEBlocks(c, h),
		rotary:    rotary(a.headDim),
	}
}

// qwen3MoEBlocks has experts in every decoder_sparse_step-th layer that
// mlp_only_layers does not name (modeling_qwen3_moe.py:
// Qwen3MoeDecoderLayer). num_local_experts, the attribute behind num_experts,
// wins where both are there.
func qwen3MoEBlocks(c *config, h int64) func(int64) part {
	dense := gatedMLP(c, h, 6144, "silu")
	experts := routed(c, moe{
		dim: h, hidden: c.pos(768, "moe_intermediate_size"),
		experts: c.dim(128, "num_local_experts", "num_experts"), activation: dense.activation,
	}, 8)
	step := c.pos(1, "decoder_sparse_step")
	only := c.dims("mlp_only_layers")
	return func(i int64) part {
		if experts.experts == 0 || (i+1)%step != 0 || slices.Contains(only, i) {
			return dense.part()
		}
		return experts.part()
	}
}
