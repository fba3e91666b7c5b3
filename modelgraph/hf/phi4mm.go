package hf

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"phi4mm"}, class: "Phi4MMForCausalLM", classes: []string{"Phi4MMForCausalLM"},
		unread: []string{"embd_pdrop", "resid_pdrop", "full_attn_mod", "interpolate_factor", "img_processor", "mlp_bias", "lm_head_bias", "attention_bias"},
		build: func(modules *builder, cfg *config, class string) {
			phi4MM(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// phi4MM is modeling_phi4mm.py of Microsoft's repository: Phi-4 multimodal under other names, with
// two sets of adapters in the matrices of every layer. Text alone passes none of them.
func phi4MM(cfg *config) *decoder {
	for _, name := range llamaFields {
		if _, there := cfg.members[name]; !there {
			cfg.fail(name, "it is absent, and the default of a phi4mm is not known here: write it into the file")
		}
	}
	hidden := cfg.pos(1, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 1})
	attn.fused, attn.window = true, readWindow(cfg, 0)
	inner := cfg.pos(1, "intermediate_size")
	q, kv := attn.heads*attn.headDim, attn.kvHeads*attn.headDim
	matrices := []phi4Matrix{
		{"self_attn.o_proj", q, hidden},
		{"self_attn.qkv_proj", hidden, q + 2*kv},
		{"mlp.gate_up_proj", hidden, 2 * inner},
		{"mlp.down_proj", inner, hidden},
	}
	sets := []phi4Adapters{readPhi4Adapters(cfg, "vision", matrices), readPhi4Adapters(cfg, "speech", matrices)}
	wrapped := func(at int) []modelgraph.Tensor {
		_, name, _ := strings.Cut(matrices[at].name, ".")
		if slices.ContainsFunc(sets, func(set phi4Adapters) bool { return set.has[at] }) {
			name = dot(name, "base_layer")
		}
		return linearParams(name, matrices[at].in, matrices[at].out, false)
	}
	rotation := partialRotary(cfg, attn.headDim)
	attend := part{op: attn.op(), params: join(wrapped(0), wrapped(1)), buffers: []modelgraph.Tensor{buffer("rotary_emb.inv_freq", modelgraph.F32, (rotation+1)/2)}}
	mlp := part{op: modelgraph.MLP{Dim: hidden, Hidden: inner, Gated: true, Fused: true, Activation: cfg.str("silu", "hidden_act")}, params: join(wrapped(2), wrapped(3))}
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(1, "vocab_size"), layers: cfg.count(1, "num_hidden_layers"), norm: modelgraph.RMSNorm,
		attention: func(int64) part { return attend }, ffn: func(int64) part { return mlp },
	}
	d.custom = func(modules *builder, name string, layer int64) {
		d.block(modules, name, layer)
		for _, set := range sets {
			set.add(modules, name, matrices)
		}
	}
	d.ahead = phi4MMExtend(cfg, hidden)
	return d
}

// phi4Matrix is a matrix of a layer that may have adapters.
type phi4Matrix struct {
	name    string
	in, out int64
}

// phi4Adapters are a set of adapters (peft: LoraLayer), and the matrices that have them.
type phi4Adapters struct {
	name string
	rank int64
	has  []bool
}

// readPhi4Adapters reads vision_lora or speech_lora; layer is an expression for a module's path.
func readPhi4Adapters(cfg *config, name string, matrices []phi4Matrix) phi4Adapters {
	field := name + "_lora"
	if !cfg.has(field) {
		cfg.fail(field, "it is absent: a phi4mm has adapters for %s", name)
	}
	lora := cfg.sub(field)
	set := phi4Adapters{name: name, rank: lora.pos(0, "r"), has: make([]bool, len(matrices))}
	const longest = 1000
	text := lora.str("", "layer")
	expr, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil || text == "" || len(text) > longest {
		lora.fail("layer", "it is not an expression for the paths of modules")
		return set
	}
	for i, matrix := range matrices {
		set.has[i] = expr.MatchString("layers.0." + matrix.name)
	}
	return set
}

// add adds the set's matrices to one layer.
func (set phi4Adapters) add(modules *builder, name string, matrices []phi4Matrix) {
	for i, matrix := range matrices {
		if set.has[i] {
			modules.inert(dot(name, matrix.name, "lora_A", set.name), linearParams("", matrix.in, set.rank, false)...)
			modules.inert(dot(name, matrix.name, "lora_B", set.name), linearParams("", set.rank, matrix.out, false)...)
		}
	}
}

// only refuses an object's fields that are not as the known code needs them.
func (cfg *fieldSet) only(want map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v := cfg.members[name]; !cfg.has(name) || short(v) != want[name] {
			cfg.fail(name, "it is not %s: modules of such a phi4mm are not known here", want[name])
		}
	}
}

// phi4MMExtend reads embd_layer and audio_processor; the code fixes the image tower.
func phi4MMExtend(cfg *config, hidden int64) func(modules *builder, path string) {
	extend := cfg.sub("embd_layer")
	extend.only(map[string]string{"embedding_cls": `"image_audio"`})
	extend.sub("image_embd_layer").only(map[string]string{ //nolint:gosec // fields of a config, whose tokens are no secrets
		"embedding_cls": `"tune_image"`, "image_token_compression_cls": `"avg_pool_2d"`, "projection_cls": `"mlp"`, "use_hd_transform": "true", "with_learnable_separator": "true",
	})
	sound := extend.sub("audio_embd_layer")
	sound.only(map[string]string{"embedding_cls": `"audio"`, "projection_cls": `"mlp"`, "use_conv_downsample": "false", "use_qformer": "false"})
	processor := cfg.sub("audio_processor")
	processor.only(map[string]string{"name": `"cascades"`})
	encoder := processor.sub("config")
	encoder.only(map[string]string{
		"batch_norm": "false", "bias_in_glu": "true", "causal": "true", "cnn_layer_norm": "true", "ext_pw_kernel_size": "1", "input_layer": `"nemo_conv"`,
	})
	bias := encoder.sub("relative_attention_bias_args")
	bias.only(map[string]string{"type": `"t5"`})
	model := &conformer{
		hidden: encoder.pos(0, "attention_dim"), inner: encoder.pos(0, "linear_units"), blocks: encoder.count(0, "num_blocks"), heads: encoder.pos(0, "attention_heads"),
		kernel: encoder.pos(0, "kernel_size"), out: encoder.pos(0, "ext_pw_out_channel"), deep: encoder.pos(0, "depthwise_seperable_out_channel"),
		multiplier: encoder.pos(0, "depthwise_multiplier"), input: encoder.pos(0, "input_size"), channels: encoder.sub("nemo_conv_settings").pos(0, "conv_channels"),
		buckets: 2 * bias.pos(0, "t5_bias_max_distance"), rate: sound.pos(0, "downsample_rate"),
	}
	model.reduced(encoder, "time_reduction")
	model.wide = model.hidden
	model.remote = true
	return func(modules *builder, path string) {
		stack := modules.hidden
		feed(modules, 0, dot(path, "embed_tokens"), phi4MMImages(modules, dot(path, "embed_tokens_extend.image_embed"), hidden))
		audio := dot(path, "embed_tokens_extend.audio_embed")
		modules.warnings = append(modules.warnings, silent)
		modules.empty(dot(audio, "drop"))
		model.tower(modules, dot(audio, "encoder"))
		for _, what := range []string{"speech", "vision"} {
			modules.inert(dot(audio, "audio_projection", what, "0"), linearParams("", model.hidden*model.rate, hidden, true)...)
			modules.empty(dot(audio, "audio_projection", what, "1"))
			modules.inert(dot(audio, "audio_projection", what, "2"), linearParams("", hidden, hidden, true)...)
		}
		modules.hidden = stack
	}
}

// phi4MMImages is Phi4MMImageEmbedding around the tower of get_siglip_vision_model. Its forward
// puts separators between the tower's features and moves neither (torch.cat of sub_img, sub_GN and
// glb_GN).
func phi4MMImages(modules *builder, path string, hidden int64) string {
	const dim, inner, layers, heads, patch, image, channels = 1152, 4304, 27, 16, 14, 448, 3
	op := modelgraph.Attention{Dim: dim, Heads: heads, KVHeads: heads, HeadDim: dim / heads, Bidirectional: true}
	attn := part{op: op, params: join(linearParams("k_proj", dim, dim, true), linearParams("v_proj", dim, dim, true),
		linearParams("q_proj", dim, dim, true), linearParams("out_proj", dim, dim, true))}
	stack := &visionStack{
		dim: dim, layers: layers, norm: modelgraph.LayerNorm, attention: func(int64) part { return attn },
		mlp: part{
			op:     modelgraph.MLP{Dim: dim, Hidden: inner, Activation: "gelu_pytorch_tanh"},
			params: join(linearParams("fc1", dim, inner, true), linearParams("fc2", inner, dim, true)),
		},
		attnNorm: "layer_norm1", attn: "self_attn", mlpNorm: "layer_norm2", mlpName: "mlp", order: []string{"self_attn", "layer_norm1", "mlp", "layer_norm2"},
	}
	grid := patchGrid{rows: image / patch, columns: image / patch, height: patch, width: patch}
	separators := len(modules.layers)
	modules.inert(dot(path, "glb_GN"), tensor("", 1, 1, dim))
	modules.inert(dot(path, "sub_GN"), tensor("", 1, 1, 1, dim))
	modules.empty(dot(path, "drop"))
	tower, features := dot(path, "img_processor"), ""
	modules.on(imageStream(grid.count()), func() {
		patches := grid.embed(modules, dot(tower, "embeddings.patch_embedding"), channels, dim)
		modules.hidden = addTable(modules, dot(tower, "embeddings.position_embedding"), grid.count(), dim, patches)
		states := stack.build(modules, dot(tower, "encoder.layers"), true)
		features = states[len(states)-2]
		modules.join(separators)
		addLayerNorm(modules, dot(tower, "post_layernorm"), dim, modules.hidden)
	})
	phi4Pool(modules, dot(tower, "head"), dim, inner)
	modules.empty(dot(path, "image_token_compression"))
	modules.on(imageStream(grid.count()/4), func() {
		features = addLinear(modules, dot(path, "img_projection.0"), dim, hidden, "gelu", features)
		modules.empty(dot(path, "img_projection.1"))
		features = addLinear(modules, dot(path, "img_projection.2"), hidden, hidden, "", features)
	})
	return features
}
