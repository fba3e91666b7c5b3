package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"wav2vec2"}, table: true, class: "Wav2Vec2ForCTC",
		classes: []string{
			"Wav2Vec2ForCTC", "Wav2Vec2Model", "Wav2Vec2ForSequenceClassification", "Wav2Vec2ForPreTraining", "Wav2Vec2ForAudioFrameClassification", "Wav2Vec2ForXVector",
		},
		build: func(modules *builder, cfg *config, class string) {
			wav2Vec2(modules, cfg, "wav2vec2", strings.TrimPrefix(class, "Wav2Vec2"))
		},
		maxSeq: func(*config) int64 { return 0 }, // positions are a convolution
		unread: oldSpeech,
	})
	register(family{
		types: []string{"hubert"}, table: true, class: "HubertForCTC",
		classes: []string{"HubertForCTC", "HubertModel", "HubertForSequenceClassification"},
		build: func(modules *builder, cfg *config, class string) {
			wav2Vec2(modules, cfg, "hubert", strings.TrimPrefix(class, "Hubert"))
		},
		maxSeq: func(*config) int64 { return 0 },
		unread: oldSpeech,
	})
}

// oldSpeech are fields of the first checkpoints' configs that no class reads.
var oldSpeech = []string{
	"feat_extract_dropout", "feat_quantizer_dropout", "gradient_checkpointing", "mask_channel_length", "mask_channel_min_space", "mask_channel_other", "mask_channel_prob",
	"mask_channel_selection", "mask_time_min_space", "mask_time_other", "mask_time_selection", "num_feat_extract_layers", "freeze_feat_extract_train", "no_mask_channel_overlap",
	"no_mask_time_overlap", "tokenizer_class", "do_normalize",
}

// speech is the common part of wav2vec 2's modules.
type speech struct {
	*builder
	cfg    *config
	path   string
	hidden int64
	// whole: a layer of convolutions is a unit, as there are no no-split classes. HuBERT has some,
	// without the convolutions.
	whole bool
}

// wav2Vec2 is modeling_wav2vec2.py, and its variant modeling_hubert.py. Its tokens are the outputs
// of the convolutions, and the workload's sequence counts them.
func wav2Vec2(modules *builder, cfg *config, path, class string) {
	model := &speech{builder: modules, cfg: cfg, path: path, hidden: cfg.pos(0, "hidden_size"), whole: path != "hubert"}
	if class == "Model" {
		model.path = ""
	}
	weighted := (class == "ForSequenceClassification" || class == "ForXVector" || class == "ForAudioFrameClassification") && cfg.has("use_weighted_layer_sum") && cfg.flag("use_weighted_layer_sum")
	if weighted {
		modules.add("layer_weights", modelgraph.Parameter{}, nil, tensor("", cfg.count(0, "num_hidden_layers")+1))
	}
	if cfg.float(0, "mask_time_prob") > 0 || cfg.float(0, "mask_feature_prob") > 0 {
		modules.add(dot(model.path, "masked_spec_embed"), modelgraph.Parameter{}, nil, tensor("", model.hidden)) // replaces hidden frames in training only
	}
	wide := model.features(dot(model.path, "feature_extractor.conv_layers"))
	extracted, projection := modules.hidden, dot(model.path, "feature_projection")
	if cfg.bool(true, "feat_proj_layer_norm") {
		extracted = addLayerNorm(modules, dot(projection, "layer_norm"), wide, extracted)
	}
	modules.hidden = addLinear(modules, dot(projection, "projection"), wide, model.hidden, "", extracted)
	from := len(modules.layers)
	model.encoder(dot(model.path, "encoder"))
	if weighted {
		modules.join(from, "layer_weights") // the class's forward stacks the outputs of all layers
	}
	model.head(class, model.adapted(class), wide, extracted)
}

// adapted adds the adapter if there is one, and returns the input width of a head.
func (model *speech) adapted(class string) int64 {
	if !model.cfg.on("add_adapter") {
		return model.hidden
	}
	out := model.adapter(dot(model.path, "adapter"))
	if class != "Model" && class != "ForCTC" && class != "ForPreTraining" || class == "ForPreTraining" && out != model.hidden {
		model.cfg.fail("add_adapter", "adapters do not go with the class of architectures")
	}
	return out
}

// head is the head of a class; its input is out wide.
func (model *speech) head(class string, out, wide int64, extracted string) {
	cfg := model.cfg
	switch class {
	case "ForCTC":
		addClassHead(model.builder, "lm_head", out, cfg.pos(0, "vocab_size"), false, model.builder.hidden)
	case "ForSequenceClassification":
		size := cfg.pos(0, "classifier_proj_size")
		projected := addLinear(model.builder, "projector", model.hidden, size, "", model.builder.hidden)
		addClassHead(model.builder, "classifier", size, cfg.labels(), true, projected)
	case "ForAudioFrameClassification":
		addClassHead(model.builder, "classifier", model.hidden, cfg.labels(), false, model.builder.hidden)
	case "ForPreTraining":
		model.quantizer(wide, extracted)
	case "ForXVector":
		model.xVector()
	}
}

// quantizer is Wav2Vec2GumbelVectorQuantizer, and the projections that its loss compares. Codes are
// sampled for the convolutions' outputs.
func (model *speech) quantizer(wide int64, extracted string) {
	cfg := model.cfg
	groups, codes := cfg.pos(0, "num_codevector_groups"), cfg.pos(0, "num_codevectors_per_group")
	width, out := cfg.pos(0, "codevector_dim"), cfg.pos(0, "proj_codevector_dim")
	if width%groups != 0 {
		cfg.fail("codevector_dim", "%d groups do not divide the width %d", groups, width)
	}
	rows := cfg.product("num_codevectors_per_group", groups, codes)
	table := model.add("quantizer.codevectors", modelgraph.Parameter{}, nil, tensor("", 1, rows, max(1, width/groups))).Name
	chosen := addLinear(model.builder, "quantizer.weight_proj", wide, rows, "", extracted)
	addLinear(model.builder, "project_hid", model.hidden, out, "", model.builder.hidden)
	model.add("project_q", modelgraph.Linear{In: width, Out: out}, []string{chosen, table}, linearParams("", width, out, true)...)
}

// xVector is Wav2Vec2ForXVector's head: layers over neighbouring frames, then mean and deviation.
func (model *speech) xVector() {
	cfg := model.cfg
	dims := cfg.dims("tdnn_dim")
	kernels := stages(cfg, "tdnn_kernel", int64(len(dims)), nil)
	if len(dims) == 0 || min(slices.Min(dims), slices.Min(kernels)) < 1 {
		cfg.fail("tdnn_dim", "there are no layers over frames")
		return
	}
	in, frames := dims[0], addLinear(model.builder, "projector", model.hidden, dims[0], "", model.builder.hidden)
	for i, out := range dims {
		name := indexed("tdnn", int64(i))
		model.unit(name, func() {
			frames = addLinear(model.builder, dot(name, "kernel"), cfg.product("tdnn_kernel", in, kernels[i]), out, "relu", frames)
		})
		in = out
	}
	width := cfg.pos(0, "xvector_output_dim")
	pooled := model.add("feature_extractor", modelgraph.Linear{In: 2 * in, Out: width, Pooled: true}, []string{frames}, linearParams("", 2*in, width, true)...).Name
	model.builder.hidden = model.add("classifier", modelgraph.Linear{In: width, Out: width, Pooled: true}, []string{pooled}, linearParams("", width, width, true)...).Name
	model.add("objective", modelgraph.Parameter{}, nil, tensor("weight", width, cfg.labels()))
}

// adapter is Wav2Vec2Adapter: convolutions that make fewer frames, and their width.
func (model *speech) adapter(path string) int64 {
	cfg := model.cfg
	out, kernel := cfg.optional(model.hidden, "output_hidden_size"), cfg.pos(0, "adapter_kernel_size")
	if out != model.hidden {
		projected := addLinear(model.builder, dot(path, "proj"), model.hidden, out, "", model.builder.hidden)
		model.builder.hidden = addLayerNorm(model.builder, dot(path, "proj_layer_norm"), out, projected)
	}
	for i := range cfg.count(0, "num_adapter_layers") {
		name := indexed(dot(path, "layers"), i)
		model.unit(name, func() {
			op := modelgraph.Conv{In: out, Out: 2 * out, Kernel: kernel}
			model.builder.hidden = model.add(dot(name, "conv"), op, []string{model.builder.hidden}, tensor("weight", 2*out, out, kernel), tensor("bias", 2*out)).Name
		})
	}
	return out
}

// features adds the convolutions over the samples and returns the last one's width. The first or
// all of them have norms.
func (model *speech) features(path string) int64 {
	modules, cfg := model.builder, model.cfg
	dims := cfg.dims("conv_dim")
	strides, kernels := stages(cfg, "conv_stride", int64(len(dims)), nil), stages(cfg, "conv_kernel", int64(len(dims)), nil)
	kind, bias := cfg.str("group", "feat_extract_norm"), cfg.flag("conv_bias")
	if kind != "group" && kind != "layer" {
		cfg.fail("feat_extract_norm", "%q is not group or layer", kind)
	}
	if len(dims) == 0 {
		cfg.fail("conv_dim", "there are no convolutions")
	}
	if cfg.fault() != nil {
		return 1
	}
	in, ratio := int64(1), int64(1)
	for _, stride := range strides[1:] {
		ratio = cfg.product("conv_stride", ratio, max(1, stride))
	}
	for i, out := range dims {
		name := indexed(path, int64(i))
		if i > 0 {
			ratio = max(1, ratio/max(1, strides[i]))
		}
		layer := func() {
			op := modelgraph.Conv{In: in, Out: out, Kernel: kernels[i], TokenRatio: ratio, Activation: cfg.str("gelu", "feat_extract_activation")}
			params := []modelgraph.Tensor{tensor("weight", out, in, kernels[i])}
			if bias {
				params = append(params, tensor("bias", out))
			}
			var inputs []string
			if i > 0 {
				inputs = []string{modules.hidden}
			}
			modules.hidden = modules.add(dot(name, "conv"), op, inputs, params...).Name
			if kind == "layer" || i == 0 {
				modules.hidden = addLayerNorm(modules, dot(name, "layer_norm"), out, modules.hidden)
			}
		}
		if model.whole {
			modules.unit(name, layer)
		} else {
			layer()
		}
		in = out
	}
	return in
}

// encoder is Wav2Vec2Encoder, or with norms before the parts Wav2Vec2EncoderStableLayerNorm.
func (model *speech) encoder(path string) {
	modules, cfg, hidden := model.builder, model.cfg, model.hidden
	stable, placed := cfg.flag("do_stable_layer_norm"), model.positions(dot(path, "pos_conv_embed"))
	op := equalHeads(cfg, hidden, 0, "num_attention_heads")
	op.Bidirectional, op.Dropout = true, cfg.float(0, "hidden_dropout") > 0
	attention := part{op: op, params: join(linearParams("k_proj", hidden, hidden, true), linearParams("v_proj", hidden, hidden, true),
		linearParams("q_proj", hidden, hidden, true), linearParams("out_proj", hidden, hidden, true))}
	mlp := feedForward{dim: hidden, hidden: cfg.pos(0, "intermediate_size"), activation: cfg.str("", "hidden_act"), bias: true, up: "intermediate_dense", down: "output_dense"}.part()
	norm := dot(path, "layer_norm")
	at := len(modules.layers)
	addLayerNorm(modules, norm, hidden, placed)
	modules.hidden = norm
	form := blockForm{attn: "attention", attnPost: "layer_norm", ffn: "feed_forward", ffnPost: "final_layer_norm"}
	if stable {
		modules.hidden = placed
		form = blockForm{attn: "attention", attnNorm: "layer_norm", ffn: "feed_forward", ffnNorm: "final_layer_norm"}
	}
	form.order = []string{"attention", "layer_norm", "feed_forward", "final_layer_norm"}
	stack := &decoder{
		hidden: hidden, norm: modelgraph.LayerNorm, normBias: true, form: form,
		attention: func(int64) part { return attention }, ffn: func(int64) part { return mlp },
	}
	for i := range cfg.count(0, "num_hidden_layers") {
		name := indexed(dot(path, "layers"), i)
		modules.unit(name, func() {
			stack.block(modules, name, i)
			if stable && cfg.has("adapter_attn_dim") {
				model.attentionAdapter(dot(name, "adapter_layer"), cfg.pos(0, "adapter_attn_dim"))
			}
		})
	}
	if stable {
		modules.layers[at].Inputs = []string{modules.hidden}
		modules.hidden = norm
	}
}

// positions is the convolution that replaces positions, whose weight is stored as a direction and a
// length, or next to a norm over the batch.
func (model *speech) positions(path string) string {
	modules, cfg, hidden := model.builder, model.cfg, model.hidden
	groups, kernel := cfg.pos(0, "num_conv_pos_embedding_groups"), cfg.pos(0, "num_conv_pos_embeddings")
	if hidden%groups != 0 {
		cfg.fail("num_conv_pos_embedding_groups", "%d does not divide hidden_size %d", groups, hidden)
	}
	name, in := dot(path, "conv"), max(1, hidden/groups)
	op := modelgraph.Conv{In: hidden, Out: hidden, Kernel: kernel, Activation: "gelu"}
	if cfg.on("conv_pos_batch_norm") {
		normed := modules.add(name, op, []string{modules.hidden}, tensor("weight", hidden, in, kernel), tensor("bias", hidden)).Name
		norm := modules.add(dot(path, "batch_norm"), modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm}, []string{normed}, normParams("", hidden, true)...)
		norm.Buffers = []modelgraph.Tensor{tensor("running_mean", hidden), tensor("running_var", hidden), buffer("num_batches_tracked", int64Type)}
		return norm.Name
	}
	place := func() (placed string) {
		defer modules.join(len(modules.layers), modules.hidden) // no hook moves what the convolution reads, and the encoder adds its result
		bias := modules.add(dot(name, "bias"), modelgraph.Parameter{}, nil, tensor("", hidden)).Name
		return modules.add(dot(name, "parametrizations.weight"), op, []string{modules.hidden, bias},
			tensor("original0", 1, 1, kernel), tensor("original1", hidden, in, kernel)).Name
	}
	if model.whole {
		return place()
	}
	var placed string
	modules.unit(name, func() { placed = place() })
	return placed
}

// attentionAdapter is Wav2Vec2AttnAdapterLayer, which is added to the block's result.
func (model *speech) attentionAdapter(path string, inner int64) {
	residual := model.builder.hidden
	norm := addLayerNorm(model.builder, dot(path, "norm"), model.hidden, residual)
	down := addLinear(model.builder, dot(path, "linear_1"), model.hidden, inner, "relu", norm)
	model.builder.hidden = model.add(dot(path, "linear_2"), modelgraph.Linear{In: inner, Out: model.hidden}, []string{down, residual}, linearParams("", inner, model.hidden, true)...).Name
}
