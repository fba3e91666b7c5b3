package hf

import "github.com/devmap-dev/devmap/modelgraph"

// deepseekV3: the layers for multi-token prediction are no part of the module. moe_layer_freq is
// read by the checkpoints' own code alone: other than 1 it is refused.
func deepseekV3(cfg *config) *decoder {
	cfg = cfg.filled("deepseek_v3")
	model := llamaParts(cfg)
	attn := latentAttention(cfg, model.hidden)
	experts := deepseekExperts(cfg, model.hidden, model.mlp.activation)
	first := cfg.dim(0, "first_k_dense_replace")
	cfg.harmlessAs("moe_layer_freq", "1")
	model.attention = func(int64) part { return attn.part() }
	model.sparse(func(i int64) bool { return i >= first }, experts.deepseek)
	model.rotaryDim = attn.rope
	cfg.computes("head_dim", attn.rope)
	return model.done()
}

// computes refuses another size of a field than the class computes: releases and classes of
// Transformers differ in which one they take.
func (cfg *config) computes(name string, size int64) {
	if cfg.said(name) && cfg.dim(0, name) != size {
		cfg.fail(name, "%d contradicts the %d that the other fields make: remove it", cfg.dim(0, name), size)
	}
}

// deepseekExperts reads the experts; n_shared_experts of them, side by side, take every token.
func deepseekExperts(cfg *config, hidden int64, activation string) moe {
	experts := moe{
		fp32Routing: true,
		dim:         hidden, hidden: cfg.pos(2048, "moe_intermediate_size"),
		experts: cfg.pos(256, "num_local_experts", "n_routed_experts"), activation: activation,
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.dim(1, "n_shared_experts"))
	return routed(cfg, experts, 8)
}

// deepseek is DeepseekV3MoE. The router's correction bias is a buffer in checkpoints, fp32 for
// every model type (_keep_in_fp32_modules_strict).
func (experts moe) deepseek() part {
	p := experts.withShared()
	p.buffers = []modelgraph.Tensor{buffer("gate.e_score_correction_bias", modelgraph.F32, experts.experts)}
	return p
}

// withShared has the shared experts even if there are none: a module of empty matrices.
func (experts moe) withShared() part {
	p := experts.part()
	if experts.shared == 0 {
		bias := experts.names.sharedBias
		p.params = join(p.params, linearParams("shared_experts.gate_proj", experts.dim, 0, bias),
			linearParams("shared_experts.up_proj", experts.dim, 0, bias), linearParams("shared_experts.down_proj", 0, experts.dim, bias))
	}
	return p
}

// deepseekV32 is a DeepSeek-V3 with an attention indexer (DeepseekV32Indexer), whose forward makes no gradients.
func deepseekV32(cfg *config) *decoder {
	model := llamaParts(cfg)
	attn := latentAttention(cfg, model.hidden)
	heads, width := cfg.pos(0, "index_n_heads"), cfg.pos(0, "index_head_dim")
	p := attn.part()
	op, _ := p.op.(modelgraph.Attention)
	op.IndexHeads, op.IndexDim, op.IndexTopK = heads, width, cfg.pos(0, "index_topk")
	p.op = op
	p.params = join(p.params, frozen(join(linearParams("indexer.wq_b", attn.qRank, cfg.product("index_n_heads", heads, width), false),
		linearParams("indexer.wk", model.hidden, width, false), normParams("indexer.k_norm", width, true), linearParams("indexer.weights_proj", model.hidden, heads, false))))
	experts := deepseekExperts(cfg, model.hidden, model.mlp.activation)
	sparse := mlpKinds(cfg, model.layers)
	cfg.harmlessAs("moe_layer_freq", "1")
	model.mlp.bias = false
	model.attention = func(int64) part { return p }
	model.sparse(func(i int64) bool { return sparse[i] }, experts.deepseek)
	model.rotaryDim = attn.rope
	return model.done()
}

// mlpKinds are the layers with experts: by mlp_layer_types, else from first_k_dense_replace on.
func mlpKinds(cfg *config, layers int64) []bool {
	const name = "mlp_layer_types"
	sparse, first := make([]bool, layers), cfg.dim(0, "first_k_dense_replace")
	kinds := cfg.strs(name)
	if cfg.has(name) && int64(len(kinds)) != layers {
		cfg.uneven(name, len(kinds), layers)
		return sparse
	}
	for i := range sparse {
		sparse[i] = int64(i) >= first
		if kinds != nil {
			if sparse[i] = kinds[i] == "sparse"; !sparse[i] && kinds[i] != "dense" {
				cfg.fail(name, "%q is neither dense nor sparse", clipName(kinds[i]))
			}
		}
	}
	return sparse
}
