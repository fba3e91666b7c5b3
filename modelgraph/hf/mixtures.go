package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// This file has decoders with mixtures of experts.

// qwen2MoE: experts in every decoder_sparse_step-th layer that mlp_only_layers does not name, next
// to a gated feed-forward that all tokens pass.
func qwen2MoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.bias, model.attn.outBias = cfg.on("qkv_bias"), false
	model.qwenExperts()
	width, below := qwenWindow(cfg), cfg.dim(0, "max_window_layers")
	model.sliding(width, func(i int64) bool { return width > 0 && i%2 == 0 && i < below })
	return model.done()
}

// qwenExperts gives a decoder experts in every decoder_sparse_step-th layer that mlp_only_layers
// does not name, next to a gated feed-forward that all tokens pass (modeling_qwen2_moe.py).
func (model *parts) qwenExperts() {
	cfg := model.cfg
	experts := routed(cfg, moe{
		castWeights: true, dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.dim(0, "num_experts"), activation: model.mlp.activation,
		shared: cfg.pos(0, "shared_expert_intermediate_size"),
		names:  moeNames{router: "gate", shared: "shared_expert", sharedGate: "shared_expert_gate"},
	}, 0)
	step, only := int64(1), cfg.dims("mlp_only_layers")
	if cfg.classHas("decoder_sparse_step") {
		step = cfg.pos(0, "decoder_sparse_step")
	}
	model.sparse(func(i int64) bool { return experts.experts != 0 && (i+1)%step == 0 && !slices.Contains(only, i) }, experts.part)
}

// phimoe: experts in every layer, LayerNorms.
func phimoe(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.headBias = cfg.on("lm_head_bias")
	experts := routed(cfg, moe{
		castWeights: true, dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "router"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// hunyuanMoE: experts in every layer, and a feed-forward for all tokens. The number of experts, and
// of experts a token, may differ by layer.
func hunyuanMoE(cfg *config) *decoder {
	model := hunyuanParts(cfg)
	if name := "attention_head_dim"; cfg.has(name) && cfg.pos(0, name) != model.attn.headDim {
		cfg.fail(name, "%d is not the %d of head_dim", cfg.pos(0, name), model.attn.headDim)
	}
	experts, topK := cfg.perLayer("num_experts", model.layers), cfg.perLayer("moe_topk", model.layers)
	model.ffn = func(i int64) part {
		return moe{
			castWeights: true, dim: model.hidden, hidden: model.mlp.hidden, experts: experts[i], topK: topK[i], shared: model.mlp.hidden,
			activation: model.mlp.activation, names: moeNames{router: "gate.wg", shared: "shared_mlp"},
		}.part()
	}
	return model.done()
}

// minimaxM2: experts in every layer, norms on q and k over all heads.
func minimaxM2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.RMSNorm, true
	model.attn.bias, model.attn.outBias = false, false
	if kind := cfg.str("per_layer", "qk_norm_type"); kind != "per_layer" {
		cfg.fail("qk_norm_type", "%q: norms of a %s are per_layer", clipName(kind), "minimax_m2")
	}
	for i, kind := range cfg.dims("attn_type_list") {
		if kind != 1 {
			cfg.fail(fmt.Sprintf("attn_type_list[%d]", i), "%d is not 1: layers without attention are not known here", kind)
		}
	}
	share := 1.0
	if cfg.has("rotary_dim") && cfg.since("5.18") { // configuration_minimax_m2.py
		share = float64(cfg.pos(0, "rotary_dim")) / float64(model.attn.headDim)
	}
	model.partial(share)
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate", correction: "e_score_correction_bias"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// minimax: lightning attention in every second layer, which keeps a state in place of keys and
// values (modeling_minimax.py), experts in all.
func minimax(cfg *config) *decoder {
	model := llamaParts(cfg)
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	model.attn.window = readWindow(cfg, 0)
	linear := lightning(cfg, model.attn)
	types := kindsOf(cfg, model.layers, []string{fullAttention, linearAttention}, func(i int64) string {
		if i%2 != 0 {
			return linearAttention
		}
		return fullAttention
	})
	model.form = llamaBlock
	model.form.order = []string{"self_attn", "input_layernorm", "post_attention_layernorm", "mlp"}
	model.attention = func(i int64) part {
		if types[i] == linearAttention {
			return linear
		}
		return model.attn.part()
	}
	return model.done()
}

// glm4MoE: DeepSeek-V3's experts after a grouped-query attention.
func glm4MoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.outBias = false
	if cfg.on("use_qk_norm") {
		model.attn.qkNorm = modelgraph.RMSNorm
	}
	model.partial(0.5)
	model.deepseekBlocks()
	return model.done()
}

// dots1: DeepSeek-V3's experts, norms on q and k, windows on request.
func dots1(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm = modelgraph.RMSNorm
	model.deepseekBlocks()
	width, from := qwenWindow(cfg), cfg.orZero("max_window_layers")
	model.sliding(width, func(i int64) bool { return width > 0 && i >= from })
	return model.done()
}

// deepseekBlocks gives a decoder DeepSeek-V3's experts from layer first_k_dense_replace on.
func (model *parts) deepseekBlocks() {
	cfg := model.cfg
	experts := moe{
		fp32Routing: true, dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.orZero("n_routed_experts"), activation: model.mlp.activation,
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.orZero("n_shared_experts"))
	experts.topK = max(1, cfg.orZero("num_experts_per_tok"))
	first := cfg.orZero("first_k_dense_replace")
	switch {
	case first >= model.layers:
	case experts.experts == 0:
		cfg.fail("n_routed_experts", "there are none, and layer %d has a router", first)
	case experts.topK > experts.experts:
		cfg.fail("num_experts_per_tok", "a token cannot go to %d of %d experts", experts.topK, experts.experts)
	}
	model.sparse(func(i int64) bool { return i >= first }, experts.deepseek)
}

// ernieMoE: experts in every moe_layer_interval-th layer from moe_layer_start_index to
// moe_layer_end_index, a bias in all or none.
func ernieMoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	bias := cfg.on("use_bias")
	model.attn.bias, model.attn.outBias, model.mlp.bias, model.headBias = bias, bias, bias, bias
	experts := moe{
		fp32Routing: true, castWeights: true, dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "moe_num_experts"), topK: cfg.pos(0, "moe_k"),
		activation: model.mlp.activation, names: moeNames{router: "gate", shared: "shared_experts", sharedBias: bias},
	}
	experts.shared = cfg.product("moe_num_shared_experts", experts.hidden, cfg.dim(0, "moe_num_shared_experts"))
	from, interval, to := cfg.dim(0, "moe_layer_start_index"), cfg.pos(0, "moe_layer_interval"), cfg.float(-1, "moe_layer_end_index")
	if to == -1 {
		to = float64(model.layers - 1)
	}
	model.ffn = func(i int64) part {
		if (i+1)%interval != 0 || i < from || float64(i) > to {
			return model.mlp.part()
		}
		p := experts.part()
		p.params = slices.Insert(p.params, 1, tensor("gate.moe_statics.e_score_correction_bias", 1, experts.experts))
		return p
	}
	return model.done()
}

// deepseekV2 is a DeepSeek-V3 with a softmax router and biases on request.
func deepseekV2(cfg *config) *decoder {
	model := llamaParts(cfg)
	attn := latentAttention(cfg, model.hidden)
	experts := moe{
		fp32Routing: true, dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "n_routed_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate", last: true, shared: "shared_experts", sharedBias: model.mlp.bias},
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.dim(0, "n_shared_experts"))
	experts.topK = max(1, cfg.orZero("num_experts_per_tok"))
	cfg.harmlessAs("moe_layer_freq", "1")
	first := cfg.dim(0, "first_k_dense_replace")
	model.attention = func(int64) part { return attn.part() }
	model.sparse(func(i int64) bool { return i >= first }, experts.withShared)
	model.rotaryDim = attn.rope
	return model.done()
}
