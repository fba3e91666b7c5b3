package hf

import "github.com/devmap-dev/devmap/modelgraph"

// llama is modeling_llama.py. Heads must divide the hidden size (validate_architecture).
func llama(cfg *config) *decoder {
	cfg = cfg.filled("llama")
	model := runningParts(cfg)
	cfg.dividesHidden(model.hidden, model.attn.heads)
	if names := cfg.strs("architectures"); len(names) > 0 && names[0] == "BitnetForCausalLM" {
		return model.bitnetLlama()
	}
	return model.done()
}

// bitnetLlama is the first BitNet, whose configs have the type llama (modeling_bitnet.py of
// 1bitLLM/bitnet_b1_58-large). It has norms before the output projections of attention and
// feed-forward, and rotary rows in every layer.
func (model *parts) bitnetLlama() *decoder {
	if wide := model.attn.heads * model.attn.headDim; wide != model.hidden {
		model.cfg.fail("head_dim", "%d heads of %d are not hidden_size %d, which the norm behind them has", model.attn.heads, model.attn.headDim, model.hidden)
	}
	model.attn.extra = []modelgraph.Tensor{tensor("inner_attn_ln.weight", model.hidden)}
	model.mlp.extra = []modelgraph.Tensor{tensor("ffn_layernorm.weight", model.mlp.hidden)}
	model.cfg.unsaid("architectures", "names a class of which sizes alone are known")
	model.rotaryDim = 0
	d := model.done()
	d.cached(model.cfg, &model.attn, "_cos_cached", "_sin_cached")
	return d
}
