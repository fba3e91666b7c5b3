package hf

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"gemma3n"}, table: true, class: "Gemma3nForConditionalGeneration", classes: []string{"Gemma3nForConditionalGeneration", "Gemma3nModel"},
		build: gemma3nWhole, maxSeq: textMaxSeq,
		unread: []string{"altup_lr_multiplier", "altup_correct_scale", "altup_active_idx", "altup_coef_clip", "audio_soft_tokens_per_image", "audio_token_id", "vision_soft_tokens_per_image"},
	})
}

// gemma3nWhole is Gemma3nForConditionalGeneration: timm's MobileNet-V5, the language model, a
// Conformer, and embedders from both towers to the text.
func gemma3nWhole(modules *builder, cfg *config, class string) {
	text, vision, audio := cfg.part("text_config"), cfg.part("vision_config"), cfg.part("audio_config")
	words := readGemma3n(text)
	if name := vision.str("mobilenetv5_300m_enc", "architecture"); name != "mobilenetv5_300m_enc" {
		vision.fail("architecture", "%q is not mobilenetv5_300m_enc, the tower that is known here", clipName(name))
	}
	if v := vision.members["model_args"]; vision.has("model_args") && !empty(v) {
		vision.fail("model_args", "%s: arguments of the tower are not known here", short(v))
	}
	path := "model"
	if baseClass(class) {
		path = ""
	}
	features := addMobileNet(modules, dot(path, "vision_tower"))
	from := len(modules.layers)
	words.build(modules, dot(path, "language_model"))
	// The forward compares its input, which is on the first GPU, with rows of the table (Gemma3nModel.forward).
	modules.join(len(modules.layers), modules.layers[0].Name, dot(path, "language_model.embed_tokens"))
	stack := modules.hidden
	sound := readGemma3nSound(audio)
	modules.warnings = append(modules.warnings, silent)
	sound.tower(modules, dot(path, "audio_tower"))
	image := gemma3nEmbedder(modules, dot(path, "embed_vision"), vision, words.hidden, features, cfg.optional(256, "vision_soft_tokens_per_image"))
	gemma3nEmbedder(modules, dot(path, "embed_audio"), audio, words.hidden, "", 0)
	feed(modules, from, dot(path, "language_model.embed_tokens"), image)
	modules.hidden = stack
	if baseClass(class) {
		return
	}
	tied := ""
	if cfg.flag("tie_word_embeddings") { // on if it is absent, off if it is null
		tied = dot(path, "language_model.embed_tokens.weight")
	}
	modules.add("lm_head", modelgraph.Head{Dim: words.hidden, Vocab: words.vocab, SoftCap: words.softCap, LogitCap: words.logitCap}, []string{stack}, linearParams("", words.hidden, words.vocab, false)...)
	if tied != "" {
		modules.tie(tied, "lm_head.weight")
	}
}

// gemma3nEmbedder is Gemma3nMultimodalEmbedder: rows for placeholder tokens, norms, and a linear
// layer. tokens are an image's, 0 if nothing runs.
func gemma3nEmbedder(modules *builder, path string, cfg *config, text int64, features string, tokens int64) string {
	dim, rows := cfg.pos(0, "hidden_size"), cfg.pos(0, "vocab_size")
	soft := dot(path, "soft_embedding_norm")
	modules.inert(dot(path, "embedding"), tensor("weight", rows, dim))
	modules.inert(dot(path, "hard_embedding_norm"), tensor("weight", dim))
	if tokens == 0 {
		modules.inert(soft, tensor("weight", dim))
		modules.inert(dot(path, "embedding_projection"), linearParams("", dim, text, false)...)
		modules.empty(dot(path, "embedding_post_projection_norm"))
		return ""
	}
	modules.on(imageStream(tokens), func() {
		modules.add(soft, modelgraph.Norm{Dim: dim}, []string{features}, tensor("weight", dim))
		projected := modules.add(dot(path, "embedding_projection"), modelgraph.Linear{In: dim, Out: text}, []string{soft}, linearParams("", dim, text, false)...).Name
		features = modules.add(dot(path, "embedding_post_projection_norm"), modelgraph.Norm{Dim: text}, []string{projected}).Name
	})
	return features
}

// gemma3nSound are the sizes of Gemma 3n's tower for sound.
type gemma3nSound struct {
	hidden, layers, heads, kernel, chunk, context int64

	channels []int64
	kernels  [2][2]int64
	final    int64 // of the convolutions, a frame
}

func readGemma3nSound(cfg *config) *gemma3nSound {
	model := &gemma3nSound{
		hidden: cfg.pos(0, "hidden_size"), layers: cfg.count(0, "conf_num_hidden_layers"), heads: cfg.pos(0, "conf_num_attention_heads"),
		kernel: cfg.pos(0, "conf_conv_kernel_size"), chunk: cfg.pos(0, "conf_attention_chunk_size"), channels: cfg.dims("sscp_conv_channel_size"),
	}
	if model.hidden%model.heads != 0 {
		cfg.fail("conf_num_attention_heads", "%d does not divide hidden_size %d", model.heads, model.hidden)
	}
	model.context = model.chunk + max(0, cfg.dim(0, "conf_attention_context_left")-1) + cfg.dim(0, "conf_attention_context_right")
	cfg.product("hidden_size", 4, model.hidden)
	cfg.product("conf_attention_chunk_size", model.chunk, model.context)
	if len(model.channels) != 2 {
		cfg.fail("sscp_conv_channel_size", "%d convolutions: there are two", len(model.channels))
		model.channels = []int64{1, 1}
	}
	var strides [2][2]int64
	model.kernels, strides = pairs(cfg, "sscp_conv_kernel_size"), pairs(cfg, "sscp_conv_stride_size")
	width := cfg.pos(0, "input_feat_size")
	for i := range model.kernels {
		if width+2 < model.kernels[i][1] {
			cfg.fail("sscp_conv_kernel_size", "%d is wider than the %d that it reads", model.kernels[i][1], width+2)
			return model
		}
		width = (width+2-model.kernels[i][1])/strides[i][1] + 1
	}
	model.final = cfg.product("sscp_conv_channel_size", model.channels[1], width)
	return model
}

// pairs reads two pairs of sizes.
func pairs(cfg *config, name string) [2][2]int64 {
	out := [2][2]int64{{1, 1}, {1, 1}}
	lists := cfg.arrays(name)
	for i, list := range lists {
		for j, v := range list {
			var count int64
			if len(lists) != 2 || len(list) != 2 || json.Unmarshal(v, &count) != nil || count < 1 || count > maxSide {
				cfg.fail(fmt.Sprintf("%s[%d]", name, i), "%s is not one of two pairs of sizes", short(v))
				return out
			}
			out[i][j] = count
		}
	}
	if len(lists) != 2 {
		cfg.fail(name, "it is not two pairs of sizes")
	}
	return out
}

// tower is Gemma3nAudioEncoder.
func (model *gemma3nSound) tower(modules *builder, path string) {
	in, sub := int64(1), dot(path, "subsample_conv_projection")
	for i, channels := range model.channels {
		at := fmt.Sprintf("%s.conv_%d", sub, i)
		modules.inert(dot(at, "conv"), tensor("weight", channels, in, model.kernels[i][0], model.kernels[i][1]))
		modules.inert(dot(at, "norm"), tensor("weight", channels))
		modules.empty(dot(at, "activation"))
		in = channels
	}
	modules.inert(dot(sub, "input_proj_linear"), linearParams("", model.final, model.hidden, false)...)
	for i := range model.layers {
		name := indexed(dot(path, "conformer"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
}

// block is Gemma3nAudioConformerBlock, whose clipping bounds are buffers.
func (model *gemma3nSound) block(modules *builder, name string) {
	hidden := model.hidden
	hold := func(at string, params ...modelgraph.Tensor) { modules.inert(dot(name, at), params...) }
	bare := func(at string, buffers ...modelgraph.Tensor) {
		modules.add(dot(name, at), modelgraph.Parameter{}, nil).Buffers = buffers
	}
	clipped := func(at string) { bare(dot(at, "gradient_clipping"), tensor("")) }
	ffn := func(at string) {
		clipped(at)
		hold(dot(at, "pre_layer_norm"), tensor("weight", hidden))
		hold(dot(at, "ffw_layer_1"), linearParams("", hidden, 4*hidden, false)...)
		hold(dot(at, "ffw_layer_2"), linearParams("", 4*hidden, hidden, false)...)
		hold(dot(at, "post_layer_norm"), tensor("weight", hidden))
	}
	clipped("")
	ffn("ffw_layer_start")
	clipped("attention")
	hold("attention.pre_attn_norm", tensor("weight", hidden))
	hold("attention.attn.per_dim_scale", tensor("", hidden/model.heads))
	bare("attention.attn.q_scale", tensor(""))
	bare("attention.attn.local_causal_valid_mask", buffer("", boolType, model.chunk, model.context))
	bare("attention.attn.softcap", buffer("", modelgraph.F32))
	bare("attention.attn.relative_position_embedding.inv_timescales", buffer("", modelgraph.F32, 1, 1, hidden/2))
	hold("attention.attn.relative_position_embedding.pos_proj", linearParams("", hidden, hidden, false)...)
	for _, of := range []string{"q_proj", "k_proj", "v_proj"} {
		hold(dot("attention.attn", of), linearParams("", hidden, hidden, false)...)
	}
	hold("attention.post", linearParams("", hidden, hidden, false)...)
	hold("attention.post_norm", tensor("weight", hidden))
	clipped("lconv1d")
	hold("lconv1d.pre_layer_norm", tensor("weight", hidden))
	hold("lconv1d.linear_start", linearParams("", hidden, 2*hidden, false)...)
	hold("lconv1d.depthwise_conv1d", tensor("weight", hidden, 1, model.kernel))
	hold("lconv1d.conv_norm", tensor("weight", hidden))
	hold("lconv1d.linear_end", linearParams("", hidden, hidden, false)...)
	ffn("ffw_layer_end")
	hold("norm", tensor("weight", hidden))
}
