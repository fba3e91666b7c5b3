package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"phi4_multimodal"}, table: true, class: "Phi4MultimodalForCausalLM", classes: causalClasses("Phi4Multimodal"),
		build: func(modules *builder, cfg *config, class string) {
			phi4Multimodal(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// silent is the warning for audio towers.
const silent = "the tower for sound holds its weights, and none of it runs: a workload has no sound"

// inert adds modules with tensors that do not run. They see no token and get no gradient.
func (modules *builder) inert(name string, params ...modelgraph.Tensor) {
	modules.on(modelgraph.Stream{Kind: modelgraph.Fixed}, func() { modules.add(name, modelgraph.Parameter{}, nil, params...) })
}

// phi4Multimodal is modeling_phi4_multimodal.py: a Phi-3, then a SigLIP tower and a Conformer.
func phi4Multimodal(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.fused, model.mlp.fused = true, true
	model.attn.window = readWindow(cfg, 0)
	model.rotaryDim = partialRotary(cfg, model.attn.headDim)
	image, audio := phi4Images(cfg.part("vision_config"), model.hidden), phi4Sound(cfg.part("audio_config"), model.hidden)
	model.ahead = func(modules *builder, path string) {
		modules.empty(dot(path, "embed_dropout"))
		stack := modules.hidden
		extend := dot(path, "embed_tokens_extend")
		feed(modules, 0, dot(path, "embed_tokens"), image(modules, dot(extend, "image_embed")))
		audio(modules, dot(extend, "audio_embed"))
		modules.hidden = stack
	}
	return model.done()
}

// phi4Images are Phi4MultimodalImageEmbedding: patches of every crop, pooled by four, and two
// linear layers. Its forward puts separators between the tower's features and moves neither.
func phi4Images(cfg *config, hidden int64) func(modules *builder, path string) string {
	dim := cfg.pos(0, "hidden_size")
	stack, grid, channels := clipStack(cfg, dim, []string{"layer_norm1", "self_attn", "layer_norm2", "mlp"}), patches(cfg, 448, 14), cfg.pos(0, "num_channels")
	pooled := (grid.rows + 1) / 2 * ((grid.columns + 1) / 2)
	inner := cfg.pos(0, "intermediate_size")
	return func(modules *builder, path string) string {
		separators := len(modules.layers)
		for _, name := range []string{"global_img_feature_extensor", "sub_img_feature_extensor"} {
			shape := []int64{1, 1, dim}
			if name[0] == 's' {
				shape = []int64{1, 1, 1, dim}
			}
			modules.inert(dot(path, name), tensor("", shape...))
		}
		modules.empty(dot(path, "drop"))
		if grid.rows%2 != 0 {
			modules.empty(dot(path, "img_processor_padding"))
		}
		tower, image := dot(path, "img_processor"), ""
		modules.on(imageStream(grid.count()), func() {
			patch := grid.embed(modules, dot(tower, "embeddings.patch_embedding"), channels, dim)
			modules.hidden = addTable(modules, dot(tower, "embeddings.position_embedding"), grid.count(), dim, patch)
			states := stack.build(modules, dot(tower, "encoder.layers"), true)
			image = hiddenState(cfg, "feature_layer", states)
			modules.join(separators)
			addLayerNorm(modules, dot(tower, "post_layernorm"), dim, modules.hidden)
		})
		phi4Pool(modules, dot(tower, "head"), dim, inner)
		modules.empty(dot(path, "image_token_compression"))
		modules.on(imageStream(pooled), func() {
			image = addLinear(modules, dot(path, "img_projection_up"), dim, hidden, "gelu", image)
			image = addLinear(modules, dot(path, "img_projection_down"), hidden, hidden, "", image)
		})
		return image
	}
}

// phi4Pool is the pooling of the tower, whose result nothing reads.
func phi4Pool(modules *builder, head string, dim, inner int64) {
	modules.inert(dot(head, "probe"), tensor("", 1, 1, dim))
	modules.inert(dot(head, "attention.in_proj_weight"), tensor("", 3*dim, dim))
	modules.inert(dot(head, "attention.in_proj_bias"), tensor("", 3*dim))
	modules.inert(dot(head, "attention.out_proj"), linearParams("", dim, dim, true)...)
	modules.inert(dot(head, "layernorm"), normParams("", dim, true)...)
	modules.inert(dot(head, "mlp.fc1"), linearParams("", dim, inner, true)...)
	modules.inert(dot(head, "mlp.fc2"), linearParams("", inner, dim, true)...)
}

// conformer are the sizes of Phi-4's tower for sound.
type conformer struct {
	hidden, inner, blocks, heads, wide, kernel, out, deep, multiplier int64

	input, channels, samplings, final, buckets, rate int64

	remote bool // under the names of Microsoft's repository
}

func phi4Conformer(cfg *config) *conformer {
	size := func(name string) int64 { return cfg.pos(0, name) }
	model := &conformer{
		hidden: size("hidden_size"), inner: size("intermediate_size"), blocks: cfg.count(0, "num_blocks"), heads: size("num_attention_heads"),
		kernel: size("kernel_size"), out: size("ext_pw_out_channel"), deep: size("depthwise_separable_out_channel"), multiplier: size("depthwise_multiplier"),
		input: size("input_size"), channels: size("nemo_conv_channels"), buckets: size("bias_max_distance"), rate: size("downsample_rate"),
	}
	width := cfg.orNull(0, max(1, model.hidden/model.heads), "head_dim")
	model.wide = cfg.product("num_attention_heads", model.heads, width)
	if !cfg.flag("bias_symmetric") {
		model.buckets *= 2
	}
	model.reduced(cfg, "time_reduction")
	cfg.product("depthwise_multiplier", model.hidden, model.multiplier)
	cfg.product("downsample_rate", model.hidden, model.rate)
	return model
}

// reduced reads by how much the convolutions shorten a sound.
func (model *conformer) reduced(cfg *config, name string) {
	reduction := cfg.pos(0, name)
	if reduction%2 != 0 {
		cfg.fail(name, "%d is no multiple of 2", reduction)
	}
	model.samplings = int64(math.Log2(float64(reduction)))
	model.final = model.input
	for range model.samplings {
		model.final = (model.final-1)/2 + 1
	}
	cfg.product("input_size", model.channels, model.final)
}

// phi4Sound are Phi4MultimodalAudioEmbedding.
func phi4Sound(cfg *config, hidden int64) func(modules *builder, path string) {
	model := phi4Conformer(cfg)
	return func(modules *builder, path string) {
		modules.warnings = append(modules.warnings, silent)
		modules.empty(dot(path, "drop"))
		model.tower(modules, dot(path, "encoder"))
		for _, what := range []string{"speech", "vision_speech"} {
			modules.inert(dot(path, "up_proj_for_"+what), linearParams("", model.hidden*model.rate, hidden, true)...)
			modules.inert(dot(path, "down_proj_for_"+what), linearParams("", hidden, hidden, true)...)
		}
	}
}

// tower is Phi4MultimodalAudioModel.
func (model *conformer) tower(modules *builder, path string) {
	mean, scale := tensor("global_mean", model.input), tensor("global_invstd", model.input)
	mean.Persistent, scale.Persistent = true, true
	modules.add(dot(path, "encoder_embedding"), modelgraph.Parameter{}, nil).Buffers = []modelgraph.Tensor{mean, scale}
	conv := func(at int64, shape ...int64) {
		modules.inert(indexed(dot(path, "embed.conv"), at), tensor("weight", shape...), tensor("bias", shape[0]))
	}
	conv(0, model.channels, 1, 3, 3)
	modules.empty(indexed(dot(path, "embed.conv"), 1))
	for i := int64(1); i < model.samplings; i++ {
		conv(3*i-1, model.channels, 1, 3, 3)
		conv(3*i, model.channels, model.channels, 1, 1)
		modules.empty(indexed(dot(path, "embed.conv"), 3*i+1))
	}
	modules.inert(dot(path, "embed.out"), linearParams("", model.channels*model.final, model.hidden, true)...)
	modules.inert(dot(path, "relative_attention_bias_layer.bias_values"), tensor("weight", model.buckets, model.heads))
	for i := range model.blocks {
		name := indexed(dot(path, "encoders"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
}

// block is Phi4MultimodalAudioConformerEncoderLayer.
func (model *conformer) block(modules *builder, name string) {
	hidden, inner := model.hidden, model.inner
	up, down, attn := "gate_up_proj", "down_proj", []string{"q_proj", "k_proj", "v_proj", "o_proj"}
	if model.remote {
		up, down, attn = "net.0.linear", "net.2", []string{"linear_q", "linear_k", "linear_v", "linear_out"}
	}
	ffn := func(at string) {
		modules.inert(dot(name, at, "layer_norm"), normParams("", hidden, true)...)
		modules.inert(dot(name, at, up), linearParams("", hidden, 2*inner, true)...)
		modules.inert(dot(name, at, down), linearParams("", inner, hidden, true)...)
	}
	ffn("feed_forward_in")
	for _, of := range attn[:3] {
		modules.inert(dot(name, "self_attn", of), linearParams("", hidden, model.wide, true)...)
	}
	modules.inert(dot(name, "self_attn", attn[3]), linearParams("", model.wide, hidden, true)...)
	conv := func(at string, shape ...int64) {
		modules.inert(dot(name, "conv", at), tensor("weight", shape...), tensor("bias", shape[0]))
	}
	modules.inert(dot(name, "conv.layer_norm"), normParams("", hidden, true)...)
	modules.inert(dot(name, "conv.glu"), tensor("b1", 1, model.out, 1), tensor("b2", 1, model.out, 1))
	conv("glu.ext_pw_conv_1d", 2*model.out, hidden, 1)
	conv("dw_sep_conv_1d.dw_conv", hidden*model.multiplier, 1, model.kernel)
	conv("dw_sep_conv_1d.pw_conv", model.deep, hidden*model.multiplier, 1)
	conv("ext_pw_conv_1d", model.out, hidden, 1)
	ffn("feed_forward_out")
	modules.inert(dot(name, "layer_norm_att"), normParams("", hidden, true)...)
	modules.inert(dot(name, "layer_norm"), normParams("", hidden, true)...)
}
