package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"wav2vec2"}, table: true, class: "Wav2Vec2ForCTC",
		classes: []string{"Wav2Vec2ForCTC", "Wav2Vec2Model", "Wav2Vec2ForSequenceClassification"},
		build:   wav2Vec2,
		maxSeq:  func(*config) int64 { return 0 }, // positions are a convolution
	})
}

// wav2Vec2 is modeling_wav2vec2.py. Its tokens are what the convolutions make
// of the samples: the workload's sequence is counted in them.
func wav2Vec2(modules *builder, cfg *config, class string) {
	path, hidden := "wav2vec2", cfg.pos(0, "hidden_size")
	if baseClass(class) {
		path = ""
	}
	for _, name := range []string{"add_adapter", "adapter_attn_dim"} {
		if cfg.has(name) && !empty(cfg.members[name]) {
			cfg.fail(name, "adapters of a wav2vec2 are not known here")
		}
	}
	if class == "Wav2Vec2ForSequenceClassification" && cfg.flag("use_weighted_layer_sum") {
		modules.add("layer_weights", modelgraph.Parameter{}, nil, tensor("", cfg.count(0, "num_hidden_layers")+1))
	}
	if cfg.float(0, "mask_time_prob") > 0 || cfg.float(0, "mask_feature_prob") > 0 {
		modules.add(dot(path, "masked_spec_embed"), modelgraph.Parameter{}, nil, tensor("", hidden)) // stands for hidden frames in training only
	}
	wide := wav2Vec2Features(modules, cfg, dot(path, "feature_extractor.conv_layers"))
	projection := dot(path, "feature_projection")
	normed := addLayerNorm(modules, dot(projection, "layer_norm"), wide, modules.hidden)
	modules.hidden = addLinear(modules, dot(projection, "projection"), wide, hidden, "", normed)
	wav2Vec2Encoder(modules, cfg, dot(path, "encoder"), hidden)
	switch class {
	case "Wav2Vec2ForCTC":
		addClassHead(modules, "lm_head", hidden, cfg.pos(0, "vocab_size"), false, modules.hidden)
	case "Wav2Vec2ForSequenceClassification":
		size := cfg.pos(0, "classifier_proj_size")
		projected := addLinear(modules, "projector", hidden, size, "", modules.hidden)
		addClassHead(modules, "classifier", size, cfg.labels(), true, projected)
	}
}

// wav2Vec2Features are the convolutions over the samples, and give the width of
// the last. The first or all of them have norms.
func wav2Vec2Features(modules *builder, cfg *config, path string) int64 {
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
		modules.unit(name, func() {
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
		})
		in = out
	}
	return in
}

// wav2Vec2Encoder is Wav2Vec2Encoder, or with norms before the parts
// Wav2Vec2EncoderStableLayerNorm. The convolution of positions is stored as a
// direction and a length.
func wav2Vec2Encoder(modules *builder, cfg *config, path string, hidden int64) {
	groups, kernel := cfg.pos(0, "num_conv_pos_embedding_groups"), cfg.pos(0, "num_conv_pos_embeddings")
	if hidden%groups != 0 {
		cfg.fail("num_conv_pos_embedding_groups", "%d does not divide hidden_size %d", groups, hidden)
	}
	positions := dot(path, "pos_conv_embed.conv")
	stable := cfg.flag("do_stable_layer_norm")
	bias := modules.add(dot(positions, "bias"), modelgraph.Parameter{}, nil, tensor("", hidden)).Name
	placed := modules.add(dot(positions, "parametrizations.weight"), modelgraph.Conv{In: hidden, Out: hidden, Kernel: kernel, Activation: "gelu"}, []string{modules.hidden, bias},
		tensor("original0", 1, 1, kernel), tensor("original1", hidden, max(1, hidden/groups), kernel)).Name
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
		modules.unit(name, func() { stack.block(modules, name, i) })
	}
	if stable {
		modules.layers[at].Inputs = []string{modules.hidden}
		modules.hidden = norm
	}
}
