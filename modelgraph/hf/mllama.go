package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"mllama"}, table: true, class: "MllamaForConditionalGeneration", classes: []string{"MllamaForConditionalGeneration", "MllamaModel"},
		build:  mllama,
		maxSeq: func(cfg *config) int64 { return cfg.part("text_config").dim(0, "max_position_embeddings") },
	})
}

// mllama is modeling_mllama.py: some layers of the language model attend to the tower's features
// instead of the text. The head never shares the embedding, which has eight more rows.
func mllama(modules *builder, cfg *config, class string) {
	path := "model"
	if baseClass(class) {
		path = ""
	}
	words, vision := cfg.part("text_config"), cfg.part("vision_config")
	out, stream := mllamaTower(modules, vision, dot(path, "vision_model"))
	features := modules.hidden
	model := llamaParts(words)
	words.dividesHidden(model.hidden, model.attn.heads)
	model.attn.headDim = max(1, model.hidden/model.attn.heads)
	model.rotaryDim = words.orNull(0, model.attn.headDim, "head_dim")
	projector, extraRows := dot(path, "multi_modal_projector"), int64(8)
	crossing := []int64{3, 8, 13, 18, 23, 28, 33, 38}
	if words.has("cross_attention_layers") {
		crossing = words.dims("cross_attention_layers")
	}
	decoder := model.done()
	decoder.rows = decoder.vocab + extraRows
	decoder.custom = func(modules *builder, name string, i int64) {
		if slices.Contains(crossing, i) {
			mllamaCross(modules, decoder, model, name, projector)
			return
		}
		decoder.block(modules, name, i)
	}
	decoder.build(modules, dot(path, "language_model"))
	modules.on(stream, func() {
		modules.add(projector, modelgraph.Linear{In: out, Out: decoder.hidden}, []string{features}, linearParams("", out, decoder.hidden, true)...)
	})
	if !baseClass(class) {
		addVocabHead(modules, "lm_head", decoder.hidden, decoder.vocab, "")
	}
}

// mllamaCross is MllamaCrossAttentionDecoderLayer, whose parts are scaled by a learned number each.
func mllamaCross(modules *builder, d *decoder, model *parts, name, image string) {
	residual, attn, norm, second, mlp := modules.hidden, dot(name, "cross_attn"), dot(name, "input_layernorm"), dot(name, "post_attention_layernorm"), dot(name, "mlp")
	for _, gate := range []string{"cross_attn_attn_gate", "cross_attn_mlp_gate"} {
		modules.add(dot(name, gate), modelgraph.Parameter{}, nil, tensor("", 1))
	}
	at := model.attn
	at.qkNorm, at.unturned = modelgraph.RMSNorm, true
	p := at.part()
	if op, ok := p.op.(modelgraph.Attention); ok {
		op.Cross = true
		p.op = op
	}
	modules.add(attn, p.op, []string{norm, residual, image}, p.params...)
	d.addNorm(modules, norm, false, residual, "")
	d.add(modules, mlp, d.ffn(0), second, attn)
	d.addNorm(modules, second, false, attn, "")
	modules.hidden = mlp
}

// mllamaTower adds a MllamaVisionModel, which cuts an image into tiles. It returns the width and
// the stream of its features: the last state and those of intermediate_layers_indices,
// concatenated. A row of a table of tile embeddings is for a whole image. The blocks see a tile's
// patches and its class, padded to a multiple of 8. Its forward stacks states of several blocks and
// moves none (torch.stack of all_intermediate_hidden_states), so the tower must be on one device.
func mllamaTower(modules *builder, cfg *config, path string) (int64, modelgraph.Stream) {
	hidden, grid, channels, tiles := cfg.pos(0, "hidden_size"), patches(cfg, 448, 14), cfg.pos(0, "num_channels"), side(cfg, 4, "max_num_tiles")
	ratios := int64(8)
	if cfg.has("supported_aspect_ratios") {
		ratios = int64(len(cfg.arrays("supported_aspect_ratios")))
	}
	places := grid.count() + 1
	stream := imageStream(cfg.product("max_num_tiles", tiles, places))
	padded := imageStream(cfg.product("max_num_tiles", tiles, (places+7)/8*8))
	whole := imageStream(1)
	bare := func(name string, shape ...int64) string {
		return modules.add(dot(path, name), modelgraph.Parameter{}, nil, tensor("", shape...)).Name
	}
	table := func(name string, wide int64) string {
		modules.on(whole, func() {
			name = modules.add(dot(path, name), modelgraph.Embedding{Vocab: ratios + 1, Dim: wide}, nil, tensor("weight", ratios+1, wide)).Name
		})
		return name
	}
	from := len(modules.layers)
	pre, post, last := dot(path, "layernorm_pre"), dot(path, "layernorm_post"), ""
	modules.on(stream, func() {
		class := bare("class_embedding", hidden)
		patch := grid.embedWith(modules, dot(path, "patch_embedding"), channels, hidden, false)
		gate, rows := bare("gated_positional_embedding.gate", 1), bare("gated_positional_embedding.embedding", places, hidden)
		tile := table("gated_positional_embedding.tile_embedding", sizeProduct(cfg, "max_num_tiles", tiles, places, hidden))
		scale := bare("pre_tile_positional_embedding.gate", 1)
		first := table("pre_tile_positional_embedding.embedding", cfg.product("max_num_tiles", tiles, hidden))
		bare("post_tile_positional_embedding.gate", 1)
		last = table("post_tile_positional_embedding.embedding", cfg.product("max_num_tiles", tiles, hidden))
		modules.add(pre, modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm}, []string{patch, class, rows, gate, scale, tile, first}, normParams("", hidden, true)...)
	})
	modules.on(padded, func() {
		at := len(modules.layers)
		modules.add(post, modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm}, nil, normParams("", hidden, true)...)
		modules.hidden = pre
		stack := mllamaStack(cfg, hidden)
		stack.build(modules, dot(path, "transformer.layers"), true)
		modules.layers[at].Inputs = []string{modules.hidden}
		modules.hidden = post
		global := mllamaStack(cfg, hidden)
		global.layers, global.scales, global.scaleDim = cfg.count(0, "num_global_layers"), []string{"gate_attn", "gate_ffn"}, 1
		global.build(modules, dot(path, "global_transformer.layers"), true, last)
	})
	modules.join(from)
	return cfg.pos(0, "vision_output_dim"), stream
}

// mllamaStack are the blocks of MllamaVisionEncoder.
func mllamaStack(cfg *config, hidden int64) *visionStack {
	op := visionAttention(cfg, hidden, 0, "attention_heads")
	params := join(linearParams("q_proj", hidden, hidden, false), linearParams("k_proj", hidden, hidden, false),
		linearParams("v_proj", hidden, hidden, false), linearParams("o_proj", hidden, hidden, false))
	return &visionStack{
		dim: hidden, layers: cfg.count(0, "num_hidden_layers"), norm: modelgraph.LayerNorm,
		attention: func(int64) part { return part{op: op, params: params} },
		mlp:       denseMLP(cfg, hidden, 0, ""),
		attnNorm:  "input_layernorm", attn: "self_attn", mlpNorm: "post_attention_layernorm", mlpName: "mlp",
		order: []string{"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
	}
}
