package hf

// mixtral is a mistral with experts in every layer, the router before them (modeling_mixtral.py:
// MixtralSparseMoeBlock). num_experts, the alias, wins over num_local_experts (attribute_map).
func mixtral(cfg *config) *decoder {
	cfg = cfg.filled("mixtral")
	model := llamaParts(cfg)
	model.attn.window = readWindow(cfg, 0)
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_experts", "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}
