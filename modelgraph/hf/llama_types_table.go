package hf

// llamaTypes were compared with Transformers 5.17, tensor by tensor
// (fixtures/oracle: sweep.py), or, where it has none, with the code in the
// checkpoints' repositories: baichuan, internlm3, minicpm, xverse.
var llamaTypes = []*llamaType{
	{
		model: "baichuan", name: "Baichuan", // modeling_baichuan.py: Attention
		classes: []string{"BaichuanForCausalLM", "BaiChuanForCausalLM"},
		unread:  []string{"gradient_checkpointing"},
		adapt: func(cfg *config, attn *attention, _ *feedForward) {
			if cfg.has("num_key_value_heads") && attn.kvHeads != attn.heads {
				cfg.fail("num_key_value_heads", "%d for num_attention_heads %d: a baichuan has as many", attn.kvHeads, attn.heads)
			}
			attn.packed = true
			if attn.eager = !cfg.has("max_position_embeddings"); attn.eager { // 13B
				attn.scoreBias = "alibi"
			}
		},
	},
	{
		model: "cwm", name: "Cwm", heads: headDefaults{kv: 8, dim: 128}, window: 8192,
		adapt:   func(cfg *config, _ *attention, ffn *feedForward) { ffn.bias = cfg.bool(false, "mlp_bias") },
		windows: func(*config) func(int64) bool { return func(i int64) bool { return i%4 != 0 } },
	},
	{
		model: "ernie4_5", name: "Ernie4_5", heads: headDefaults{kv: 2, dim: 128}, tied: tied,
		classes: append(causalClasses("Ernie4_5"), "Ernie4_5_ForCausalLM"), // the name in the first repositories
		unread:  []string{"compression_ratio", "use_rmsnorm", "weight_share_add_bias"},
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			attn.bias = cfg.flag("use_bias")
			attn.outBias, ffn.bias = attn.bias, attn.bias
		},
	},
	{
		model: "eurobert", name: "EuroBert", classes: []string{"EuroBertForMaskedLM", "EuroBertModel"},
		unread: []string{"classifier_pooling", "clf_pooling", "mask_token"},
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			llamaBiases(cfg, attn, ffn)
			attn.bidirectional = true
		},
	},
	{
		model: "granite", name: "Granite", adapt: llamaBiases,
		unread: []string{"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"},
	},
	{
		model: "helium", name: "Helium", heads: headDefaults{kv: 20, dim: 128},
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			llamaBiases(cfg, attn, ffn)
			attn.outBias = false
			if attn.heads*attn.headDim != attn.dim {
				cfg.fail("head_dim", "%d × %d heads is not hidden_size %d, which the projection behind them has", attn.headDim, attn.heads, attn.dim)
			}
		},
	},
	{
		model: "internlm3", name: "InternLM3", heads: headDefaults{kv: 32}, // modeling_internlm3.py
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			attn.bias = cfg.flag("qkv_bias")
			attn.outBias = cfg.flag("bias")
			ffn.bias = attn.outBias
		},
	},
	{
		model: "minicpm", name: "MiniCPM", tied: mustSay, // modeling_minicpm.py: scaled sums and logits
		unread: []string{"scale_emb", "dim_model_base", "scale_depth"},
		adapt: func(cfg *config, attn *attention, _ *feedForward) {
			attn.bias = cfg.bool(false, "attention_bias")
			attn.outBias = attn.bias
		},
	},
	{
		model: "ministral", name: "Ministral", heads: headDefaults{kv: 8}, window: 4096,
		windows: func(cfg *config) func(int64) bool {
			slides := !cfg.null("sliding_window")
			return func(int64) bool { return slides }
		},
	},
	{
		model: "ministral3", name: "Ministral3", heads: headDefaults{kv: 8, dim: 128},
		windows: func(cfg *config) func(int64) bool {
			slides := cfg.has("sliding_window")
			return func(int64) bool { return slides }
		},
	},
	{
		model: "seed_oss", name: "SeedOss", heads: headDefaults{kv: 8, dim: 128},
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			attn.bias = cfg.bool(true, "attention_bias")
			attn.outBias = cfg.bool(false, "attention_out_bias")
			ffn.bias = cfg.bool(false, "mlp_bias")
		},
	},
	{
		model: "smollm3", name: "SmolLM3", heads: headDefaults{kv: 4}, tied: tied, adapt: llamaBiases,
		unread: []string{"no_rope_layers", "no_rope_layer_interval", "max_window_layers"},
		windows: func(*config) func(int64) bool {
			return func(int64) bool { return false }
		},
	},
	{model: "xverse", name: "Xverse", unread: []string{"max_tokenizer_truncation"}}, // modeling_xverse.py
}

// llamaBiases are attention_bias and mlp_bias, as a llama has them.
func llamaBiases(cfg *config, attn *attention, ffn *feedForward) {
	attn.bias = cfg.bool(false, "attention_bias")
	attn.outBias = attn.bias
	ffn.bias = cfg.bool(false, "mlp_bias")
}
