package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// qwen3MoE: its window, if used, is every layer's.
func qwen3MoE(cfg *config) *decoder {
	cfg = cfg.filled("qwen3_moe")
	model := llamaParts(cfg)
	model.qkNorms(modelgraph.RMSNorm)
	model.attn.window = qwenWindow(cfg)
	model.ffn = qwen3MoEBlocks(cfg, model.hidden)
	return model.done()
}

// qwen3MoEBlocks has experts in every decoder_sparse_step-th layer that mlp_only_layers does not
// name (modeling_qwen3_moe.py: Qwen3MoeDecoderLayer). num_local_experts, the attribute behind
// num_experts, wins if both are there.
func qwen3MoEBlocks(cfg *config, hidden int64) func(int64) part {
	dense := gatedMLP(cfg, hidden, 0, "")
	experts := routed(cfg, moe{
		castWeights: true, dim: hidden, hidden: cfg.pos(0, "moe_intermediate_size"),
		experts: cfg.dim(0, "num_local_experts", "num_experts"), activation: dense.activation,
	}, 0)
	step := cfg.pos(0, "decoder_sparse_step")
	only := cfg.dims("mlp_only_layers")
	return func(i int64) part {
		if experts.experts == 0 || (i+1)%step != 0 || slices.Contains(only, i) {
			return dense.part()
		}
		return experts.part()
	}
}
