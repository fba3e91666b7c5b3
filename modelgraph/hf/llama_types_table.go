package hf

// llamaTypes were compared with Transformers 5.17, tensor by tensor (fixtures/oracle: sweep.py).
// Types that it lacks were compared with their repositories' code: baichuan, deepseek, internlm,
// internlm3, mimo, minicpm, xverse.
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
		model: "deepseek", name: "Deepseek",
		unread: []string{"norm_topk_prob", "scoring_func", "seq_aux", "aux_loss_alpha"},
		adapt: func(cfg *config, attn *attention, _ *feedForward) {
			llamaBiases(cfg, attn, new(feedForward))
			if !cfg.has("num_key_value_heads") {
				cfg.fail("num_key_value_heads", "it is absent, and the default of a deepseek is not known here: write it into the file")
			}
		},
		change: deepseekMoE,
	},
	{model: "internlm", name: "InternLM", unread: []string{"rotary"}, change: internLM},
	{
		model: "internlm3", name: "InternLM3", heads: headDefaults{kv: 32}, // modeling_internlm3.py
		adapt: func(cfg *config, attn *attention, ffn *feedForward) {
			attn.bias = cfg.flag("qkv_bias")
			attn.outBias = cfg.flag("bias")
			ffn.bias = attn.outBias
		},
	},
	{model: "mimo", name: "MiMo", heads: headDefaults{kv: 32}, unread: []string{"max_window_layers", "attention_bias"}, change: miMo},
	{
		model: "minicpm", name: "MiniCPM", tied: mustSay, // modeling_minicpm.py: scaled sums and logits
		unread: []string{"scale_emb", "dim_model_base", "scale_depth"},
		adapt: func(cfg *config, attn *attention, _ *feedForward) {
			attn.bias = cfg.bool(false, "attention_bias")
			attn.outBias = attn.bias
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
