package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"llama4"}, table: true, class: "Llama4ForConditionalGeneration", classes: []string{"Llama4ForConditionalGeneration"},
		build:  func(modules *builder, cfg *config, _ string) { llama4(modules, cfg) },
		unread: []string{"vision_feature_layer"}, // no class reads it: the tower's last state is used
		maxSeq: func(cfg *config) int64 { return cfg.part("text_config").dim(0, "max_position_embeddings") },
	})
}

// llama4Text reads a Llama4TextConfig. Experts are in moe_layers, or in every
// interleave_moe_layer_step-th layer. Three of four layers rotate, and these have attention in
// chunks.
func llama4Text(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.mlp.hidden = cfg.pos(0, "intermediate_size_mlp")
	model.ffn = llama4FFN(cfg, model)
	model.form = llamaBlock
	model.form.ffn = "feed_forward"
	model.attn.ownScores = true
	interval, rope, chunk := cfg.pos(0, "no_rope_layer_interval"), cfg.dims("no_rope_layers"), cfg.orZero("attention_chunk_size")
	const chunked = "chunked_attention"
	turns := func(i int64) bool {
		if len(rope) > 0 {
			return i < int64(len(rope)) && rope[i] != 0
		}
		return (i+1)%interval != 0
	}
	types := kindsOf(cfg, model.layers, []string{chunked, fullAttention}, func(i int64) string {
		if turns(i) {
			return chunked
		}
		return fullAttention
	})
	model.attention = func(i int64) part {
		at := model.attn
		at.unturned = !turns(i)
		if types[i] == chunked {
			at.window = chunk
		}
		if cfg.on("use_qk_norm") && turns(i) { // without weights
			at.qkNorm, at.extra = modelgraph.RMSNorm, []modelgraph.Tensor{}
		}
		return at.part()
	}
	return model.done()
}

// llama4FFN is the feed-forward of a layer: experts or not. A list of layers with experts that is
// empty (Llama Guard 4) leaves their sizes zero.
func llama4FFN(cfg *config, model *parts) func(int64) part {
	given, listed := cfg.dims("moe_layers"), cfg.has("moe_layers")
	step := cfg.orZero("interleave_moe_layer_step")
	if listed && len(given) == 0 {
		cfg.orZero("num_local_experts")
		cfg.orZero("num_experts_per_tok")
		return func(int64) part { return model.mlp.part() }
	}
	inner := cfg.pos(0, "intermediate_size")
	if !listed {
		step = cfg.pos(0, "interleave_moe_layer_step")
	}
	experts := routed(cfg, moe{dim: model.hidden, hidden: inner, shared: inner, experts: cfg.pos(0, "num_local_experts"), activation: model.mlp.activation, dense: true}, 0)
	mixture := part{op: experts.op(), params: join([]modelgraph.Tensor{
		tensor("experts.gate_up_proj", experts.experts, model.hidden, 2*inner), tensor("experts.down_proj", experts.experts, inner, model.hidden),
	}, linearParams("router", model.hidden, experts.experts, false), feedForward{dim: model.hidden, hidden: inner}.under("shared_expert"))}
	return func(i int64) part {
		if listed && slices.Contains(given, i) || !listed && (i+1)%step == 0 {
			return mixture
		}
		return model.mlp.part()
	}
}

// llama4 adds a Llama4ForConditionalGeneration (modeling_llama4.py) around a whole causal model.
func llama4(modules *builder, cfg *config) {
	words, vision := cfg.part("text_config"), cfg.part("vision_config")
	text := llama4Text(words)
	image := llama4Vision(modules, vision)
	tokens, wide := image.tokens, vision.pos(0, "vision_output_dim")
	const projector, path = "multi_modal_projector.linear_1", "language_model.model"
	modules.on(imageStream(tokens), func() {
		modules.add(projector, modelgraph.Linear{In: wide, Out: text.hidden}, []string{image.last}, linearParams("", wide, text.hidden, false)...)
	})
	from := len(modules.layers)
	text.build(modules, path)
	feed(modules, from, dot(path, "embed_tokens"), projector)
	tied := ""
	if words.bool(false, "tie_word_embeddings") {
		tied = dot(path, "embed_tokens.weight")
	}
	addVocabHead(modules, "language_model.lm_head", text.hidden, text.vocab, tied)
}

// madeFeatures are the tokens an image, and the layer that gives them.
type madeFeatures struct {
	tokens int64
	last   string
}

// llama4Vision adds a Llama4VisionModel: patches by a matrix, the class token after them, patches
// shuffled into fewer, wider tokens.
func llama4Vision(modules *builder, cfg *config) madeFeatures {
	const path = "vision_model"
	hidden, grid, channels := cfg.pos(0, "hidden_size"), patches(cfg, 448, 14), cfg.pos(0, "num_channels")
	op := visionAttention(cfg, hidden, 0, "num_attention_heads")
	op.Rope = true
	inner := cfg.pos(0, "intermediate_size")
	params := join(linearParams("q_proj", hidden, hidden, true), linearParams("k_proj", hidden, hidden, true),
		linearParams("v_proj", hidden, hidden, true), linearParams("o_proj", hidden, hidden, true))
	stack := &visionStack{
		dim: hidden, layers: cfg.count(0, "num_hidden_layers"), norm: modelgraph.LayerNorm,
		attention: func(int64) part { return part{op: op, params: params} },
		mlp:       feedForward{dim: hidden, hidden: inner, activation: "gelu", bias: true, up: "fc1", down: "fc2"}.part(),
		attnNorm:  "input_layernorm", attn: "self_attn", mlpNorm: "post_attention_layernorm", mlpName: "mlp",
		order: []string{"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
	}
	pixels := sizeProduct(cfg, "num_channels", channels, grid.height, grid.width)
	post := dot(path, "layernorm_post")
	modules.on(imageStream(grid.count()+1), func() {
		class := modules.add(dot(path, "class_embedding"), modelgraph.Parameter{}, nil, tensor("", hidden)).Name
		places := modules.add(dot(path, "positional_embedding_vlm"), modelgraph.Parameter{}, nil, tensor("", grid.count()+1, hidden)).Name
		patch := modules.add(dot(path, "patch_embedding.linear"), modelgraph.Linear{In: pixels, Out: hidden}, nil, linearParams("", pixels, hidden, false)...).Name
		// cosines and sines of rows and columns, as complex numbers of 8 bytes
		modules.add(dot(path, "rotary_embedding"), modelgraph.Rotary{HeadDim: op.HeadDim, Packed: true}, nil).Buffers = []modelgraph.Tensor{
			buffer("freqs_ci", typeNamed("C64"), grid.count()+1, 1, op.HeadDim/2),
		}
		modules.hidden = modules.add(dot(path, "layernorm_pre"), modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm}, []string{patch, class, places}, normParams("", hidden, true)...).Name
		from := len(modules.layers)
		modules.add(post, modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm}, nil, normParams("", hidden, true)...)
		stack.build(modules, dot(path, "model.layers"), true)
		modules.layers[from].Inputs = []string{modules.hidden}
	})
	ratio := cfg.float(0, "pixel_shuffle_ratio")
	tokens := max(1, int64(float64(grid.count())*ratio*ratio))
	in, out := cfg.pos(0, "projector_input_dim"), cfg.pos(0, "projector_output_dim")
	modules.on(imageStream(tokens), func() {
		wide := addFeatures(modules, dot(path, "vision_adapter.mlp.fc1"), inner, in, false, "gelu", []string{post})
		modules.hidden = addFeatures(modules, dot(path, "vision_adapter.mlp.fc2"), out, out, false, "gelu", []string{wide})
	})
	return madeFeatures{tokens, modules.hidden}
}
