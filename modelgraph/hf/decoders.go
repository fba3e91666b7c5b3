package hf

// decoderFamilies are the decoders that the table of config classes fills: a reader has only a
// type's differences from a llama. They were compared with Transformers 5.17, module for module
// (fixtures/oracle/families.py).
var decoderFamilies = []struct {
	model string
	read  func(*config) *decoder
	// runs and unread are as in [family].
	runs   bool
	unread []string
	// also are other names of the causal class (in the first repositories).
	also []string
	// positions is the field with the longest sequence, if it has another name.
	positions string
}{
	{model: "cohere2", read: cohere2},
	{model: "dbrx", read: dbrx, positions: "max_seq_len", unread: []string{"moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights"}},
	{model: "deepseek_v2", read: deepseekV2, unread: []string{"ep_size", "scoring_func", "seq_aux"}},
	{model: "deepseek_v3", read: deepseekV3, unread: deepseekUnread},
	{model: "deepseek_v32", read: deepseekV32, unread: deepseekUnread},
	{model: "dots1", read: dots1},
	{model: "ernie4_5", read: ernie, also: []string{"Ernie4_5_ForCausalLM"}, unread: []string{"compression_ratio", "use_rmsnorm", "weight_share_add_bias"}},
	{
		model: "ernie4_5_moe", read: ernieMoE,
		unread: []string{"moe_use_aux_free", "moe_gate", "moe_capacity", "moe_group", "moe_norm_min", "moe_use_hard_gate", "moe_aux_loss_lambda", "num_nextn_predict_layers", "use_rmsnorm"},
	},
	{model: "exaone4", read: exaone4},
	{model: "falcon", read: falcon},
	{model: "falcon_h1", read: falconH1, unread: []string{"mamba_use_mlp"}},
	{model: "falcon_mamba", read: falconMamba},
	{model: "gemma", read: gemma, runs: true},
	{model: "gemma2", read: gemma2, runs: true},
	{model: "gemma3n_text", read: gemma3nText},
	{model: "gemma3_text", read: gemma3Text, runs: true},
	{model: "glm4_moe", read: glm4MoE},
	{model: "gpt_bigcode", read: gptBigCode},
	{model: "gpt_neo", read: gptNeo},
	{model: "gpt_oss", read: gptOSS, unread: []string{"experts_per_token", "swiglu_limit", "initial_context_length"}},
	{model: "gptj", read: gptJ},
	{model: "granite", read: granite},
	{model: "granitemoehybrid", read: graniteMoEHybrid},
	{model: "hunyuan_v1_dense", read: hunyuan},
	{
		model: "hunyuan_v1_moe", read: hunyuanMoE,
		unread: []string{ // of images, latents and heads that the switches next to them turn off
			"moe_intermediate_size", "num_shared_expert", "anyres_pooling_size", "cla_share_factor", "dense_list", "im_end_id", "im_newline_id", "im_start_id",
			"mask_init_id", "norm_type", "num_media_embeds", "org_vocab_size", "pad_id", "pool_type", "routed_scaling_factor", "text_end_id", "text_start_id",
			"use_mixed_mlp_moe", "use_qk_norm", "use_rotary_pos_emb", "video_end_id", "video_start_id", "vit_input_resolution", "vit_mapping_type",
			"vit_norm_type", "vit_patch", "vit_token",
		},
	},
	{model: "jamba", read: jamba, unread: []string{"mamba_inner_layernorms"}},
	{model: "lfm2", read: lfm2},
	{model: "llama", read: llama, runs: true, also: []string{"BitnetForCausalLM"}},
	{model: "mamba2", read: mamba2},
	{model: "minicpm3", read: miniCPM3, unread: []string{"dim_model_base", "scale_depth"}},
	{model: "minimax", read: minimax},
	{
		model: "minimax_m2", read: minimaxM2,
		unread: []string{ // of modules that no class makes: layers that predict tokens further on
			"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta", "mlp_intermediate_size", "mtp_transformer_layers",
			"num_mtp_modules", "qk_norm_type", "rotary_dim", "scoring_func", "shared_moe_mode", "use_mtp", "use_qk_norm", "use_routing_bias",
		},
	},
	{model: "ministral", read: ministral},
	{model: "ministral3", read: ministral3},
	{model: "mistral", read: mistral, runs: true},
	{model: "nemotron", read: nemotron},
	{model: "nemotron_h", read: nemotronH, unread: []string{"num_hidden_layers", "num_query_groups", "time_step_rank", "partial_rotary_factor", "mtp_hybrid_override_pattern"}},
	{model: "olmo", read: olmo},
	{model: "olmo2", read: olmo2},
	{model: "olmo3", read: olmo3},
	{model: "phi", read: phi},
	{model: "phi3", read: phi3, runs: true, unread: []string{"attention_bias", "mlp_bias", "lm_head_bias", "full_attn_mod", "interpolate_factor"}},
	{model: "phimoe", read: phimoe, also: []string{"PhiMoEForCausalLM"}, unread: []string{"input_jitter_noise", "router_jitter_noise"}},
	{model: "qwen2", read: qwen2, runs: true, also: []string{"Qwen2ForRewardModel", "Qwen2ForProcessRewardModel"}},
	{model: "qwen2_moe", read: qwen2MoE},
	{model: "qwen3", read: qwen3, runs: true},
	{model: "qwen3_5_moe_text", read: qwen35MoE},
	{model: "qwen3_5_text", read: qwen35},
	{model: "qwen3_moe", read: qwen3MoE, unread: []string{"norm_topk_prob", "max_window_layers", "shared_expert_intermediate_size"}},
	{model: "qwen3_next", read: qwen3Next},
	{model: "seed_oss", read: seedOSS},
	{model: "smollm3", read: smolLM3},
	{model: "zamba2", read: zamba2, unread: []string{"mamba_headdim", "attention_hidden_size", "ffn_hidden_size", "kv_channels", "num_query_groups", "attention_head_dim", "lora_rank"}},
}

var deepseekUnread = []string{
	"ep_size", "scoring_func", "topk_method", "seq_aux", "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor",
	"num_nextn_predict_layers", "num_mtp_layers", "qk_head_dim", "head_dim",
}

func init() {
	for _, kind := range decoderFamilies {
		textModels[kind.model] = func(cfg *config) *decoder { return kind.read(cfg.filled(kind.model)) }
		var longest func(*config) int64
		if kind.positions != "" {
			longest = func(cfg *config) int64 { return cfg.pos(0, kind.positions) }
		}
		register(family{
			maxSeq: longest,
			types:  []string{kind.model}, table: true, runs: kind.runs, unread: kind.unread, also: kind.also,
			build: func(modules *builder, cfg *config, class string) {
				kind.read(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
			},
		})
	}
}
