package hf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// mambaFields are a config's names for the sizes and bias switches of a Mamba mixer.
type mambaFields struct{ inner, expand, state, kernel, rank, heads, groups, chunk, bias, convBias string }

// selective is a Mamba mixer (modeling_mamba.py).
func selective(cfg *config, hidden int64, fields mambaFields) (modelgraph.StateSpace, part) {
	op := modelgraph.StateSpace{
		Dim: hidden, Inner: fields.width(cfg, hidden), State: cfg.pos(0, fields.state),
		Kernel: cfg.pos(0, fields.kernel), DtRank: timeStepRank(cfg, hidden, fields.rank),
	}
	return op, part{op: op, params: modelgraph.Params(op, fields.biases(cfg))}
}

// chunked is a Mamba-2 mixer (modeling_mamba2.py).
func chunked(cfg *config, hidden int64, fields mambaFields) (modelgraph.StateSpace, part) {
	op := modelgraph.StateSpace{
		Dim: hidden, State: cfg.pos(0, fields.state), Kernel: cfg.pos(0, fields.kernel),
		Heads: cfg.pos(0, fields.heads), Groups: cfg.pos(0, fields.groups), Chunk: cfg.pos(0, fields.chunk),
		Contracted: cfg.since("5.18"),
	}
	op.Inner = fields.width(cfg, hidden)
	if op.Inner%op.Heads != 0 {
		cfg.fail(fields.heads, "%d heads do not divide the width of %d", op.Heads, op.Inner)
	}
	cfg.product(fields.state, op.Groups, op.State)
	return op, part{op: op, params: modelgraph.Params(op, fields.biases(cfg))}
}

// width is the field inner, else expand times the model's width.
func (fields mambaFields) width(cfg *config, hidden int64) int64 {
	if fields.inner != "" && cfg.has(fields.inner) {
		return cfg.pos(0, fields.inner)
	}
	return cfg.product(fields.expand, cfg.pos(0, fields.expand), hidden)
}

func (fields mambaFields) biases(cfg *config) func(string) bool {
	bias, convBias := cfg.flag(fields.bias), cfg.flag(fields.convBias)
	return func(linear string) bool {
		switch linear {
		case "conv1d":
			return convBias
		case "in_proj", "out_proj":
			return bias
		}
		return false
	}
}

// without is the part without the tensors of a module.
func (p part) without(module string) part {
	p.params = slices.DeleteFunc(slices.Clone(p.params), func(t modelgraph.Tensor) bool { return strings.HasPrefix(t.Name, module+".") })
	return p
}

var mambaNames = decoderNames{base: "backbone", embed: "embeddings", layers: "layers", norm: "norm_f"}

// mixerBlock is a norm and a mixer, and nothing else.
var mixerBlock = blockForm{attnNorm: "norm", attn: "mixer", order: []string{"norm", "mixer"}}

// mixers is a decoder of mixers alone.
func mixers(cfg *config, mixer part) *decoder {
	if op, ok := mixer.op.(modelgraph.StateSpace); ok {
		op.FP32Residual = cfg.bool(true, "residual_in_fp32")
		mixer.op = op
	}
	return &decoder{
		logits32: true, hidden: cfg.pos(0, "hidden_size"), vocab: cfg.pos(0, "vocab_size"), layers: cfg.count(0, "num_hidden_layers"),
		norm: modelgraph.RMSNorm, names: mambaNames, form: mixerBlock, attention: func(int64) part { return mixer },
	}
}

// mamba2: Mamba-2's mixer in every layer.
func mamba2(cfg *config) *decoder {
	_, mixer := chunked(cfg, cfg.pos(0, "hidden_size"), mambaFields{
		expand: "expand", state: "state_size", kernel: "conv_kernel", heads: "num_heads", groups: "n_groups", chunk: "chunk_size", bias: "use_bias", convBias: "use_conv_bias",
	})
	return mixers(cfg, mixer)
}

// falconMamba: Mamba's mixer, with norms of ones on the step, B and C.
func falconMamba(cfg *config) *decoder {
	op, mixer := selective(cfg, cfg.pos(0, "hidden_size"), mambaFields{
		// intermediate_size is no field of the class, but sets the attribute.
		inner: "intermediate_size", expand: "expand", state: "state_size", kernel: "conv_kernel", rank: "time_step_rank", bias: "use_bias", convBias: "use_conv_bias",
	})
	mixer.buffers = []modelgraph.Tensor{tensor("dt_layernorm.weight", op.Inner), tensor("b_layernorm.weight", op.State), tensor("c_layernorm.weight", op.State)}
	return mixers(cfg, mixer)
}

// jamba: attention in one of attn_layer_period layers, Mamba's mixer with norms on the step, B and
// C in the others, experts in one of expert_layer_period.
func jamba(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.rotaryDim, model.attn.unturned = 0, true
	model.names = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "final_layernorm"}
	op, mixer := selective(cfg, model.hidden, mambaFields{
		expand: "mamba_expand", state: "mamba_d_state", kernel: "mamba_d_conv", rank: "mamba_dt_rank", bias: "mamba_proj_bias", convBias: "mamba_conv_bias",
	})
	mixer.params = join(mixer.params, normParams("dt_layernorm", op.DtRank, false), normParams("b_layernorm", op.State, false), normParams("c_layernorm", op.State, false))
	experts := moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_experts"), activation: model.mlp.activation, names: moeNames{router: "router"},
	}
	if experts.experts > 1 {
		experts = routed(cfg, experts, 0)
	}
	attends := every(cfg, "attn_layer_period", "attn_layer_offset")
	routes := every(cfg, "expert_layer_period", "expert_layer_offset")
	model.sparse(func(i int64) bool { return routes(i) && experts.experts > 1 }, experts.part)
	model.mixed(attends, mixer, blockForm{attnNorm: "input_layernorm", attn: "mamba", ffnNorm: "pre_ff_layernorm", ffn: "feed_forward"})
	return model.done()
}

// every is one of so many layers, counted from an offset.
func every(cfg *config, period, offset string) func(int64) bool {
	each, from := cfg.pos(0, period), cfg.dim(0, offset)
	if from >= each {
		cfg.fail(offset, "%d is not less than %s %d", from, period, each)
	}
	return func(i int64) bool { return i%each == from }
}

// mixed gives attention layers self_attn, and the others the mixer under form's name.
func (model *parts) mixed(attends func(int64) bool, mixer part, form blockForm) {
	model.attention = func(i int64) part {
		if attends(i) {
			return model.attn.part()
		}
		return mixer
	}
	model.formAt = func(i int64) blockForm {
		at := form
		if attends(i) {
			at.attn, at.order = "self_attn", slices.Clone(form.order)
			for j, name := range at.order {
				if name == form.attn {
					at.order[j] = "self_attn"
				}
			}
		}
		return at
	}
}

var hybridFields = mambaFields{
	expand: "mamba_expand", state: "mamba_d_state", kernel: "mamba_d_conv", heads: "mamba_n_heads", groups: "mamba_n_groups", chunk: "mamba_chunk_size",
	bias: "mamba_proj_bias", convBias: "mamba_conv_bias",
}

// graniteMoEHybrid: Mamba-2 or attention, then a mixture, if any, and a feed-forward for all
// tokens.
func graniteMoEHybrid(cfg *config) *decoder {
	model := llamaParts(cfg)
	if cfg.name("position_embedding_type") != "rope" {
		model.rotaryDim, model.attn.unturned = 0, true
	}
	_, mixer := chunked(cfg, model.hidden, hybridFields)
	types := kindsOf(cfg, model.layers, []string{linearAttention, fullAttention}, func(int64) string { return linearAttention })
	shared := modelgraph.MLP{Dim: model.hidden, Hidden: cfg.pos(0, "shared_intermediate_size"), Gated: true, Fused: true, Activation: model.mlp.activation}
	all := part{op: shared, params: join(linearParams("input_linear", model.hidden, 2*shared.Hidden, false), linearParams("output_linear", shared.Hidden, model.hidden, false))}
	form := blockForm{
		attnNorm: "input_layernorm", attn: "mamba", ffnNorm: "post_attention_layernorm", ffn: "shared_mlp",
		order: []string{"input_layernorm", "post_attention_layernorm", "shared_mlp", "mamba"},
	}
	model.ffn = func(int64) part { return all }
	if count := cfg.orZero("num_local_experts"); count > 0 {
		experts := routed(cfg, moe{castWeights: true, dim: model.hidden, hidden: model.mlp.hidden, experts: count, activation: model.mlp.activation, names: moeNames{router: "router"}}, 0)
		form.ffn, form.ffnParallel = "block_sparse_moe", "shared_mlp"
		form.order = []string{"input_layernorm", "post_attention_layernorm", "block_sparse_moe", "shared_mlp", "mamba"}
		model.ffn, model.ffnParallel = func(int64) part { return experts.part() }, model.ffn
	}
	attends := func(i int64) bool { return types[i] == fullAttention }
	model.mixed(attends, mixer, form)
	return model.done()
}

// falconH1: Mamba-2 next to attention in every layer.
func falconH1(cfg *config) *decoder {
	model := llamaParts(cfg)
	fields := hybridFields
	fields.inner = "mamba_d_ssm"
	op, mixer := chunked(cfg, model.hidden, fields)
	if !cfg.flag("mamba_rms_norm") {
		mixer = mixer.without("norm")
	}
	mixer = mixer.without("out_proj")
	mixer.params = join(mixer.params, linearParams("out_proj", op.Inner, model.hidden, cfg.flag("projectors_bias")))
	mixer.buffers = []modelgraph.Tensor{tensor("mup_vector", 1, 1, 2*op.Inner+2*op.Groups*op.State+op.Heads)}
	model.names = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "final_layernorm"}
	model.form = blockForm{
		attnNorm: "input_layernorm", attn: "mamba", attnParallel: "self_attn", ffnNorm: "pre_ff_layernorm", ffn: "feed_forward",
		order: []string{"feed_forward", "mamba", "self_attn", "input_layernorm", "pre_ff_layernorm"},
	}
	attend := model.attn.part()
	model.attention = func(int64) part { return mixer }
	model.attentionParallel = func(int64) part { return attend }
	return model.done()
}

// nemotronH: each layer is one part: Mamba-2, attention, feed-forward or mixture, by
// hybrid_override_pattern or layers_block_type.
func nemotronH(cfg *config) *decoder {
	for old, name := range map[string]string{
		"mamba_n_groups": "n_groups", "mamba_d_conv": "conv_kernel", "mamba_expand": "expand", "mamba_conv_bias": "use_conv_bias", "mamba_chunk_size": "chunk_size",
	} {
		if cfg.has(old) {
			cfg.members[name] = cfg.members[old]
		}
	}
	hidden := cfg.pos(0, "hidden_size")
	kinds := nemotronKinds(cfg)
	attn := groupedAttention(cfg, hidden, headDefaults{})
	attn.unturned = true
	// The checkpoints' own code has another name for head_dim.
	if own := cfg.pos(attn.headDim, "attention_head_dim"); own != attn.headDim {
		cfg.fail("attention_head_dim", "%d is not head_dim %d", own, attn.headDim)
	}
	op, mixer := chunkedHeads(cfg, hidden)
	mixer.op = op
	mlp := feedForward{dim: hidden, hidden: cfg.pos(0, "intermediate_size"), activation: cfg.str("", "mlp_hidden_act"), bias: cfg.on("mlp_bias"), up: "up_proj", down: "down_proj"}
	latent := cfg.orZero("moe_latent_size")
	inside := cmp.Or(latent, hidden)
	shared := mlp
	shared.hidden = cfg.pos(0, "moe_shared_expert_intermediate_size")
	experts := routed(cfg, moe{fp32Routing: true, dim: hidden, hidden: cfg.pos(0, "moe_intermediate_size"), experts: cfg.pos(0, "n_routed_experts"), shared: shared.hidden, activation: mlp.activation}, 0)
	mixture := part{
		op: experts.op(), buffers: []modelgraph.Tensor{buffer("gate.e_score_correction_bias", modelgraph.F32, experts.experts)},
		params: join([]modelgraph.Tensor{
			tensor("experts.up_proj", experts.experts, experts.hidden, inside), tensor("experts.down_proj", experts.experts, inside, experts.hidden),
			tensor("gate.weight", experts.experts, hidden),
		}, shared.under("shared_experts")),
	}
	if latent > 0 { // modeling_nemotron_h.py: NemotronHMoE
		mixture.op = modelgraph.Opaque{}
		mixture.params = join(mixture.params, linearParams("fc1_latent_proj", hidden, latent, mlp.bias), linearParams("fc2_latent_proj", latent, hidden, mlp.bias))
	}
	of := map[string]part{linearAttention: mixer, fullAttention: attn.part(), "mlp": mlp.part(), "moe": mixture}
	return &decoder{
		behind: func(modules *builder, _ string) {
			if count, said := int64(len(kinds)), cfg.whole(0, "num_hidden_layers"); said != 0 && said != count {
				modules.warnings = append(modules.warnings, fmt.Sprintf("num_hidden_layers is %d, and the layers' kinds are %d: these count, as in Transformers", said, count))
			}
		},
		logits32: true, hidden: hidden, vocab: cfg.pos(0, "vocab_size"), layers: int64(len(kinds)), norm: modelgraph.RMSNorm,
		names: decoderNames{base: "model", embed: "embeddings", layers: "layers", norm: "norm_f"}, form: mixerBlock, apart: true,
		attention: func(i int64) part { return of[kinds[i]] },
	}
}

// chunkedHeads is a Mamba-2 mixer whose width is given by its heads.
func chunkedHeads(cfg *config, hidden int64) (modelgraph.StateSpace, part) {
	fields := mambaFields{bias: "use_bias", convBias: "use_conv_bias"}
	heads := cfg.pos(0, "mamba_num_heads")
	op := modelgraph.StateSpace{
		Dim: hidden, Inner: cfg.product("mamba_head_dim", heads, cfg.pos(0, "mamba_head_dim")), State: cfg.pos(0, "ssm_state_size"), Kernel: cfg.pos(0, "conv_kernel"),
		Heads: heads, Groups: cfg.pos(0, "n_groups"), Chunk: cfg.pos(0, "chunk_size"),
		Contracted: cfg.since("5.18"),
	}
	cfg.product("ssm_state_size", op.Groups, op.State)
	return op, part{op: op, params: modelgraph.Params(op, fields.biases(cfg))}
}

// nemotronKinds are the layers' kinds (configuration_nemotron_h.py).
func nemotronKinds(cfg *config) []string {
	letters := map[rune]string{'M': linearAttention, '*': fullAttention, '-': "mlp", 'E': "moe"}
	if !cfg.has("layers_block_type") && cfg.has("hybrid_override_pattern") {
		var kinds []string
		for at, letter := range cfg.str("", "hybrid_override_pattern") {
			if letters[letter] == "" || len(kinds) >= maxLayers {
				cfg.fail("hybrid_override_pattern", "%q at %d is not M, *, - or E, or there are more than %d", letter, at, maxLayers)
				return nil
			}
			kinds = append(kinds, letters[letter])
		}
		return kinds
	}
	if !cfg.has("layers_block_type") {
		return []string{linearAttention, "moe", fullAttention, "mlp"}
	}
	kinds := cfg.strs("layers_block_type")
	for i, kind := range kinds {
		if now := legacyKinds[kind]; now != "" {
			kinds[i] = now
		}
		if !slices.Contains([]string{linearAttention, fullAttention, "mlp", "moe"}, kinds[i]) {
			cfg.fail("layers_block_type", "%q is not linear_attention, full_attention, mlp or moe", clipName(kind))
			return nil
		}
	}
	return kinds
}
