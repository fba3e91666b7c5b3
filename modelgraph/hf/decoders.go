package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// decoderFamilies are the decoders that the table of config classes fills: a
// reader names what a type has that a llama has not. They were compared with
// Transformers 5.17, module for module (fixtures/oracle/families.py).
var decoderFamilies = []struct {
	model string
	read  func(*config) *decoder
	// runs, named and unread are as in [family].
	runs, named bool
	unread      []string
}{
	{model: "bitnet", read: bitnet},
	{model: "cwm", read: cwm},
	{model: "ernie4_5", read: ernie},
	{model: "gpt_oss", read: gptOSS, named: true, unread: []string{"experts_per_token", "swiglu_limit", "initial_context_length"}},
	{model: "granite", read: granite},
	{model: "helium", read: helium},
	{model: "ministral", read: ministral},
	{model: "ministral3", read: ministral3},
	{model: "qwen3", read: qwen3, runs: true, named: true},
	{model: "qwen3_moe", read: qwen3MoE, named: true, unread: []string{"norm_topk_prob", "max_window_layers", "shared_expert_intermediate_size"}},
	{model: "qwen3_next", read: qwen3Next},
	{model: "qwen3_5_moe_text", read: qwen35MoE},
	{model: "qwen3_5_text", read: qwen35},
	{model: "seed_oss", read: seedOSS},
	{model: "smollm3", read: smolLM3},
	{model: "minimax", read: minimax},
	{model: "cohere", read: cohere},
	{model: "cohere2", read: cohere2},
	{model: "deepseek_v2", read: deepseekV2},
	{
		model: "deepseek_v3", read: deepseekV3, named: true,
		unread: []string{
			"ep_size", "scoring_func", "topk_method", "seq_aux", "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor",
			"num_nextn_predict_layers", "num_mtp_layers", "qk_head_dim", "head_dim",
		},
	},
	{model: "ernie4_5_moe", read: ernieMoE},
	{model: "exaone4", read: exaone4},
	{model: "falcon", read: falcon},
	{model: "falcon_h1", read: falconH1},
	{model: "falcon_mamba", read: falconMamba},
	{model: "granitemoehybrid", read: graniteMoEHybrid},
	{model: "jamba", read: jamba},
	{model: "llama", read: llama, runs: true, named: true},
	{model: "llama4_text", read: llama4Text},
	{model: "mamba2", read: mamba2},
	{model: "nemotron_h", read: nemotronH},
	{model: "gemma", read: gemma, runs: true, named: true},
	{model: "gemma2", read: gemma2, runs: true, named: true},
	{model: "gemma3_text", read: gemma3Text, runs: true, named: true},
	{model: "glm", read: glm},
	{model: "glm4", read: glm4},
	{model: "glm4_moe", read: glm4MoE},
	{model: "gpt_neox", read: gptNeoX},
	{model: "granitemoe", read: graniteMoE},
	{model: "hunyuan_v1_dense", read: hunyuan},
	{model: "hunyuan_v1_moe", read: hunyuanMoE},
	{model: "minimax_m2", read: minimaxM2},
	{model: "mistral", read: mistral, runs: true, named: true},
	{model: "mixtral", read: mixtral, named: true, unread: []string{"router_jitter_noise"}},
	{model: "nemotron", read: nemotron},
	{model: "olmo2", read: olmo2},
	{model: "olmoe", read: olmoe},
	{model: "phi", read: phi},
	{model: "phi3", read: phi3, runs: true, named: true, unread: []string{"attention_bias", "mlp_bias", "lm_head_bias", "full_attn_mod", "interpolate_factor"}},
	{model: "phimoe", read: phimoe},
	{model: "qwen2", read: qwen2, runs: true, named: true},
	{model: "qwen2_moe", read: qwen2MoE},
	{model: "stablelm", read: stablelm},
	{model: "starcoder2", read: starcoder2},
}

func init() {
	for _, kind := range decoderFamilies {
		textModels[kind.model] = func(cfg *config) *decoder { return kind.read(cfg.filled(kind.model)) }
		register(family{
			types: []string{kind.model}, table: true, runs: kind.runs, named: kind.named, unread: kind.unread,
			build: func(modules *builder, cfg *config, class string) {
				kind.read(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
			},
		})
	}
}

// parts are a decoder's, as a filled config says; a reader changes what its
// type has otherwise and calls decoder last.
type parts struct {
	*decoder
	cfg  *config
	attn attention
	mlp  feedForward
	// rotaryDim is the width that turns; 0: nothing does.
	rotaryDim int64
}

// llamaParts reads what a llama has, of a config that is filled: fields that
// its class lacks are absent here too.
func llamaParts(cfg *config) *parts {
	hidden := cfg.pos(0, "hidden_size")
	model := &parts{cfg: cfg, decoder: &decoder{hidden: hidden, norm: modelgraph.RMSNorm}}
	model.attn = groupedAttention(cfg, hidden, headDefaults{})
	model.attn.bias = cfg.on("attention_bias")
	model.attn.outBias = model.attn.bias
	model.mlp = feedForward{dim: hidden}
	if cfg.classHas("intermediate_size") {
		model.mlp.hidden = cfg.pos(0, "intermediate_size")
	}
	model.mlp.activation, model.mlp.bias = cfg.str("silu", "hidden_act"), cfg.on("mlp_bias")
	model.vocab, model.layers = cfg.pos(0, "vocab_size"), cfg.count(0, "num_hidden_layers")
	model.rotaryDim = model.attn.headDim
	return model
}

// runningParts are those of a family that runs: what its layers compute is
// read too.
func runningParts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.attn.rotation = cfg.rotation(model.attn.headDim, 0)
	model.epsilon, model.padding = cfg.number(0, "rms_norm_eps"), cfg.padding(0, model.vocab)
	return model
}

// on is a switch that the config's class has, on.
func (cfg *config) on(name string) bool { return cfg.classHas(name) && cfg.flag(name) }

// done is the decoder of the parts.
func (model *parts) done() *decoder {
	if model.attention == nil {
		model.attention = func(int64) part { return model.attn.part() }
	}
	if model.ffn == nil {
		model.ffn = func(int64) part { return model.mlp.part() }
	}
	if model.rotaryDim > 0 {
		model.rotary = rotary(model.rotaryDim)
	}
	return model.decoder
}

// layerNorms are torch.nn.LayerNorm, with biases.
func (model *parts) layerNorms() { model.norm, model.normBias = modelgraph.LayerNorm, true }

// partial is the part of a head that turns: partial_rotary_factor among the
// RoPE parameters or beside them, or the type's own.
func (model *parts) partial(share float64) {
	model.rotaryDim = model.partialOf(model.attn.headDim, share, "partial_rotary_factor")
}

func (model *parts) partialOf(width int64, share float64, name string) int64 {
	rope := model.cfg.sub(model.cfg.pick([]string{"rope_scaling", "rope_parameters"}))
	if model.cfg.has(name) {
		share = model.cfg.float(share, name)
	}
	share = rope.float(share, "partial_rotary_factor")
	if !(share > 0 && share <= 1) {
		model.cfg.fail(name, "%v is not a share (more than 0, 1 at most)", share)
		return width
	}
	return int64(float64(width) * share)
}

// sliding gives the layers their windows: layer_types, or where it is absent
// what slides says of a layer.
func (model *parts) sliding(width int64, slides func(layer int64) bool) {
	model.attention = model.attn.windows(layerTypes(model.cfg, model.layers, slides), width)
}

// never is a layer without a window.
func never(int64) bool { return false }

// bitnet: norms before the projections out of attention and feed-forward.
func bitnet(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.extra = []modelgraph.Tensor{tensor("attn_sub_norm.weight", model.hidden)}
	model.mlp.extra = []modelgraph.Tensor{tensor("ffn_sub_norm.weight", model.mlp.hidden)}
	return model.done()
}

// cohere: one LayerNorm without bias before attention and feed-forward, which
// run beside each other.
func cohere(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.norm, model.form = modelgraph.LayerNorm, parallelBlock
	if cfg.on("use_qk_norm") {
		model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.LayerNorm, true
		model.attn.extra = []modelgraph.Tensor{
			tensor("q_norm.weight", model.attn.heads, model.attn.headDim), tensor("k_norm.weight", model.attn.kvHeads, model.attn.headDim),
		}
	}
	return model.done()
}

// cohere2: windows in all but every fourth layer; a head's width is never
// given.
func cohere2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.norm, model.form = modelgraph.LayerNorm, parallelBlock
	model.attn.headDim = max(1, model.hidden/model.attn.heads)
	model.rotaryDim = model.attn.headDim
	pattern := cfg.pos(4, "sliding_window_pattern")
	model.sliding(readWindow(cfg, 0), func(i int64) bool { return (i+1)%pattern != 0 })
	return model.done()
}

// deepseekV2 is a DeepSeek-V3 with a softmax router and biases on request.
func deepseekV2(cfg *config) *decoder {
	model := llamaParts(cfg)
	attn := latentAttention(cfg, model.hidden)
	experts := moe{
		dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "n_routed_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate", last: true, shared: "shared_experts", sharedBias: model.mlp.bias},
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.dim(0, "n_shared_experts"))
	experts.topK = max(1, cfg.orZero("num_experts_per_tok"))
	first := cfg.dim(0, "first_k_dense_replace")
	model.attention = func(int64) part { return attn.part() }
	model.ffn = func(i int64) part {
		if i < first {
			return model.mlp.part()
		}
		return experts.part()
	}
	model.rotaryDim = attn.rope
	return model.done()
}

// ernieMoE: experts in every moe_layer_interval-th layer from
// moe_layer_start_index to moe_layer_end_index, a bias in all or none.
func ernieMoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	bias := cfg.on("use_bias")
	model.attn.bias, model.attn.outBias, model.mlp.bias, model.headBias = bias, bias, bias, bias
	experts := moe{
		dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "moe_num_experts"), topK: cfg.pos(0, "moe_k"),
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

// exaone4: norms behind the parts, norms on q and k, windows in all but every
// sliding_window_pattern-th layer.
func exaone4(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.form, model.attn.qkNorm = olmo2Block, modelgraph.RMSNorm
	pattern := cfg.orZero("sliding_window_pattern")
	if cfg.null("sliding_window") {
		pattern = 0
	}
	model.sliding(readWindow(cfg, 0), func(i int64) bool { return pattern > 0 && (i+1)%pattern != 0 })
	return model.done()
}

// falcon: one matrix for q, k and v, parallel parts behind one norm or two,
// ALiBi in place of RoPE on request.
func falcon(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.hidden = cfg.pos(0, "n_embed", "hidden_size")
	bias, wide := cfg.on("bias"), cfg.on("new_decoder_architecture")
	heads := cfg.pos(0, "num_attention_heads")
	cfg.dividesHidden(model.hidden, heads)
	model.attn = attention{
		dim: model.hidden, heads: heads, kvHeads: 1, headDim: max(1, model.hidden/heads), bias: bias, outBias: bias,
		names: attentionNames{fused: "query_key_value", out: "dense"},
	}
	switch {
	case wide:
		model.attn.kvHeads = cfg.optional(heads, "num_kv_heads")
	case !cfg.on("multi_query"):
		model.attn.kvHeads = heads
	}
	model.mlp = feedForward{
		dim: model.hidden, hidden: cfg.optional(4*model.hidden, "ffn_hidden_size"), activation: cfg.name("activation"), bias: bias,
		up: "dense_h_to_4h", down: "dense_4h_to_h",
	}
	model.classifier = true
	model.names = decoderNames{base: "transformer", embed: "word_embeddings", layers: "h", norm: "ln_f"}
	model.form = blockForm{attnNorm: "input_layernorm", attn: "self_attention", ffn: "mlp", parallel: true, order: []string{"self_attention", "mlp", "input_layernorm"}}
	norms := cfg.orZero("num_ln_in_parallel_attn")
	switch {
	case !cfg.on("parallel_attn"):
		model.form = blockForm{attnNorm: "input_layernorm", attn: "self_attention", ffnNorm: "post_attention_layernorm", ffn: "mlp",
			order: []string{"self_attention", "mlp", "post_attention_layernorm", "input_layernorm"}}
	case norms == 2 || cfg.null("num_ln_in_parallel_attn") && wide:
		model.form = blockForm{attnNorm: "ln_attn", attn: "self_attention", ffnNorm: "ln_mlp", ffn: "mlp", parallel: true}
	}
	model.rotaryDim = model.attn.headDim
	if cfg.on("alibi") {
		model.attn.eager, model.attn.scoreBias = true, "alibi"
	}
	return model.done()
}

// glm: half of a head turns, gate and up are one matrix.
func glm(cfg *config) *decoder { return glmParts(cfg).done() }

func glmParts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.attn.outBias, model.mlp.fused = false, true
	model.partial(0.5)
	return model
}

// glm4 is a glm with norms behind the parts too.
func glm4(cfg *config) *decoder {
	model := glmParts(cfg)
	model.form = blockForm{
		attnNorm: "input_layernorm", attn: "self_attn", attnPost: "post_self_attn_layernorm",
		ffnNorm: "post_attention_layernorm", ffn: "mlp", ffnPost: "post_mlp_layernorm",
		order: []string{"self_attn", "mlp", "input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"},
	}
	return model.done()
}

// glm4MoE: DeepSeek-V3's experts behind a grouped-query attention.
func glm4MoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.outBias = false
	if cfg.on("use_qk_norm") {
		model.attn.qkNorm = modelgraph.RMSNorm
	}
	model.partial(0.5)
	experts := moe{
		fp32Routing: true, dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "n_routed_experts"), activation: model.mlp.activation,
	}
	experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.dim(0, "n_shared_experts"))
	experts = routed(cfg, experts, 0)
	first := cfg.dim(0, "first_k_dense_replace")
	model.ffn = func(i int64) part {
		if i < first {
			return model.mlp.part()
		}
		return experts.deepseek()
	}
	return model.done()
}

// gptNeoX: one matrix for q, k and v, LayerNorms, parallel parts behind two
// norms on request.
func gptNeoX(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	cfg.dividesHidden(model.hidden, model.attn.heads)
	model.attn.kvHeads, model.attn.headDim = model.attn.heads, max(1, model.hidden/model.attn.heads)
	model.attn.names = attentionNames{fused: "query_key_value", out: "dense"}
	model.mlp.up, model.mlp.down, model.mlp.bias = "dense_h_to_4h", "dense_4h_to_h", true
	model.classifier = true
	model.names = decoderNames{base: "gpt_neox", embed: "embed_in", layers: "layers", norm: "final_layer_norm"}
	model.form = blockForm{
		attnNorm: "input_layernorm", attn: "attention", ffnNorm: "post_attention_layernorm", ffn: "mlp", parallel: cfg.on("use_parallel_residual"),
		order: []string{"input_layernorm", "post_attention_layernorm", "attention", "mlp"},
	}
	model.rotaryDim = model.partialOf(model.attn.headDim, 0.25, "rotary_pct")
	return model.done()
}

// graniteMoE: experts in every layer, under a name of their own.
func graniteMoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "router"},
	}, 0)
	model.form = llamaBlock
	model.form.ffn, model.form.order = "block_sparse_moe", []string{"self_attn", "input_layernorm", "post_attention_layernorm", "block_sparse_moe"}
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// hunyuan: norms on q and k under names of their own.
func hunyuan(cfg *config) *decoder { return hunyuanParts(cfg).done() }

func hunyuanParts(cfg *config) *parts {
	model := llamaParts(cfg)
	model.attn.normed("query_layernorm", "key_layernorm", modelgraph.RMSNorm, false)
	return model
}

// hunyuanMoE: experts in every layer, and a feed-forward that all tokens pass.
func hunyuanMoE(cfg *config) *decoder {
	model := hunyuanParts(cfg)
	experts := moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_experts"), topK: cfg.pos(0, "moe_topk"), shared: model.mlp.hidden,
		activation: model.mlp.activation, names: moeNames{router: "gate.wg", shared: "shared_mlp"},
	}
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// minimaxM2: experts in every layer, norms on q and k over all heads.
func minimaxM2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.RMSNorm, true
	model.attn.bias, model.attn.outBias = false, false
	model.partial(1)
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate", correction: "e_score_correction_bias"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// nemotron: LayerNorms of 1 + weight, a feed-forward without a gate.
func nemotron(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.mlp.up, model.mlp.down = "up_proj", "down_proj"
	model.partial(0.5)
	return model.done()
}

// olmo2: norms behind the parts, norms on q and k over all heads.
func olmo2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.form = olmo2Block
	model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.RMSNorm, true
	return model.done()
}

// olmoe: experts in every layer, norms on q and k over all heads.
func olmoe(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.RMSNorm, true
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_experts"), activation: model.mlp.activation,
		names: moeNames{router: "gate"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// phi: parallel parts behind one LayerNorm, biases everywhere, half of a head
// turns.
func phi(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.form, model.headBias = parallelBlock, true
	model.names = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "final_layernorm"}
	model.attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "dense"}
	model.attn.bias, model.attn.outBias = true, true
	if cfg.on("qk_layernorm") {
		model.attn.normed("q_layernorm", "k_layernorm", modelgraph.LayerNorm, true)
	}
	model.mlp.up, model.mlp.down, model.mlp.bias = "fc1", "fc2", true
	model.partial(0.5)
	return model.done()
}

// phimoe: experts in every layer, LayerNorms.
func phimoe(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.headBias = cfg.on("lm_head_bias")
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation,
		names: moeNames{router: "router"},
	}, 0)
	model.ffn = func(int64) part { return experts.part() }
	return model.done()
}

// qwen2MoE: experts in every decoder_sparse_step-th layer that mlp_only_layers
// does not name, beside a gated feed-forward that all tokens pass.
func qwen2MoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.bias, model.attn.outBias = cfg.on("qkv_bias"), false
	model.qwenExperts()
	width, below := qwenWindow(cfg), cfg.dim(0, "max_window_layers")
	model.sliding(width, func(i int64) bool { return width > 0 && i%2 == 0 && i < below })
	return model.done()
}

// qwenExperts gives a decoder experts in every decoder_sparse_step-th layer
// that mlp_only_layers does not name, beside a gated feed-forward that all
// tokens pass (modeling_qwen2_moe.py).
func (model *parts) qwenExperts() {
	cfg := model.cfg
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.dim(0, "num_experts"), activation: model.mlp.activation,
		shared: cfg.pos(0, "shared_expert_intermediate_size"),
		names:  moeNames{router: "gate", shared: "shared_expert", sharedGate: "shared_expert_gate"},
	}, 0)
	step, only := int64(1), cfg.dims("mlp_only_layers")
	if cfg.classHas("decoder_sparse_step") {
		step = cfg.pos(0, "decoder_sparse_step")
	}
	model.ffn = func(i int64) part {
		if experts.experts == 0 || (i+1)%step != 0 || slices.Contains(only, i) {
			return model.mlp.part()
		}
		return experts.part()
	}
}

// stablelm: LayerNorms, a quarter of a head turns, parallel parts on request.
func stablelm(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	cfg.dividesHidden(model.hidden, model.attn.heads)
	model.attn.headDim = max(1, model.hidden/model.attn.heads)
	model.attn.bias, model.attn.outBias = cfg.on("use_qkv_bias"), false
	if cfg.on("use_parallel_residual") {
		model.form = parallelBlock
	}
	if cfg.on("qk_layernorm") {
		model.attn.qkNorm, model.attn.qkNormWhole = modelgraph.LayerNorm, true
		model.attn.extra = join(headNorms("q_layernorm.norms", model.attn.heads, model.attn.headDim), headNorms("k_layernorm.norms", model.attn.kvHeads, model.attn.headDim))
	}
	model.partial(0.25)
	return model.done()
}

// headNorms are norms without bias, one a head.
func headNorms(name string, heads, width int64) []modelgraph.Tensor {
	var norms []modelgraph.Tensor
	for i := range min(heads, maxLayers) {
		norms = append(norms, tensor(dot(indexed(name, i), "weight"), width))
	}
	return norms
}

// starcoder2: LayerNorms, a feed-forward without a gate, biases on request.
func starcoder2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	bias := cfg.on("use_bias")
	model.attn.bias, model.attn.outBias, model.mlp.bias = bias, bias, bias
	model.mlp.up, model.mlp.down = "c_fc", "c_proj"
	model.attn.window = readWindow(cfg, 0)
	return model.done()
}

// cwm: windows in all but every fourth layer.
func cwm(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.bias, model.attn.outBias = false, false
	model.sliding(readWindow(cfg, 0), func(i int64) bool { return i%4 != 0 })
	return model.done()
}

// ernie: a bias in all matrices or in none.
func ernie(cfg *config) *decoder {
	model := llamaParts(cfg)
	bias := cfg.on("use_bias")
	model.attn.bias, model.attn.outBias, model.mlp.bias = bias, bias, bias
	return model.done()
}

// granite is a llama whose embeddings, sums, scores and logits are scaled.
func granite(cfg *config) *decoder { return llamaParts(cfg).done() }

// helium: the projection out of attention has no bias, and is as wide as the
// model.
func helium(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.outBias = false
	if model.attn.heads*model.attn.headDim != model.hidden {
		cfg.fail("head_dim", "%d × %d heads is not hidden_size %d, which the projection behind them has", model.attn.headDim, model.attn.heads, model.hidden)
	}
	return model.done()
}

// ministral: windows in all layers, if there are any.
func ministral(cfg *config) *decoder {
	model := llamaParts(cfg)
	slides := cfg.has("sliding_window")
	model.sliding(readWindow(cfg, 0), func(int64) bool { return slides })
	return model.done()
}

// ministral3: the same, without windows by default.
func ministral3(cfg *config) *decoder { return ministral(cfg) }

// seedOSS: a bias of its own for the projection out of attention.
func seedOSS(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.outBias = cfg.on("attention_out_bias")
	return model.done()
}

// smolLM3: no positions in every fourth layer, windows on request.
func smolLM3(cfg *config) *decoder {
	model := llamaParts(cfg)
	width := qwenWindow(cfg)
	interval, rope := cfg.pos(0, "no_rope_layer_interval"), cfg.dims("no_rope_layers")
	turns := func(i int64) bool {
		if i < int64(len(rope)) {
			return rope[i] != 0
		}
		return (i+1)%interval != 0
	}
	model.sliding(width, func(i int64) bool { return width > 0 && !turns(i) })
	return model.done()
}

// minimax: lightning attention in every second layer, which keeps a state in
// place of keys and values (modeling_minimax.py), experts in all.
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
