package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"sam"}, table: true, classes: []string{"SamModel"},
		build:  func(modules *builder, cfg *config, _ string) { readSAM(cfg).build(modules) },
		maxSeq: func(*config) int64 { return 0 },
	})
	register(family{
		types: []string{"sam_vision_model"}, table: true, classes: []string{"SamVisionModel"},
		build: func(modules *builder, cfg *config, _ string) {
			model := &sam{vision: cfg, grid: patches(cfg, 1024, 16)}
			modules.on(fixedStream(model.grid.count()), func() { model.tower(modules, "vision_encoder") })
		},
		maxSeq: func(*config) int64 { return 0 },
	})
}

// sam is a SamConfig (configuration_sam.py). Its prompt and mask configs have no type.
type sam struct {
	vision, prompts, masks *config
	tied                   bool
	grid                   patchGrid
	image                  string // the layer with the tower's output
}

func readSAM(cfg *config) *sam {
	model := &sam{vision: cfg.part("vision_config"), prompts: cfg.sub("prompt_encoder_config"), masks: cfg.sub("mask_decoder_config")}
	model.grid, model.tied = patches(model.vision, 1024, 16), cfg.bool(true, "tie_word_embeddings")
	return model
}

// build adds the modules of a SamModel (modeling_sam.py).
func (model *sam) build(modules *builder) {
	const shared = "shared_image_embedding"
	features := model.vision.pos(0, "num_pos_feats")
	modules.on(fixedStream(model.grid.count()), func() {
		modules.add(shared, modelgraph.Parameter{}, nil, tensor("positional_embedding", 2, features))
		model.tower(modules, "vision_encoder")
	})
	// A prompt of one point: its token and a padding token (SamPromptEncoder._embed_points), and
	// tokens for masks and their score.
	asked := 2 + 1 + model.masks.pos(3, "num_multimask_outputs") + 1
	modules.on(fixedStream(asked), func() {
		modules.add("prompt_encoder.shared_embedding", modelgraph.Parameter{}, nil, tensor("positional_embedding", 2, features))
		if model.tied {
			modules.tie(shared+".positional_embedding", "prompt_encoder.shared_embedding.positional_embedding")
		}
		from := len(modules.layers) - 1
		model.promptEncoder(modules, "prompt_encoder")
		model.maskDecoder(modules, "mask_decoder")
		modules.join(from, shared, model.image) // forwards of the decoder add prompts and tokens to the image
	})
}

// tower is SamVisionEncoder. Transformers lists its attention as no-split, but not the class that
// SDPA uses instead: blocks are whole here.
func (model *sam) tower(modules *builder, path string) {
	cfg, hidden := model.vision, model.vision.pos(0, "hidden_size")
	out := cfg.pos(0, "output_channels")
	var extra []string
	from := len(modules.layers)
	if cfg.flag("use_abs_pos") {
		extra = append(extra, modules.add(dot(path, "pos_embed"), modelgraph.Parameter{}, nil, tensor("", 1, model.grid.rows, model.grid.columns, hidden)).Name)
	}
	model.patchEmbedding(modules, dot(path, "patch_embed.projection"), hidden)
	if extra != nil {
		modules.join(from) // SamVisionEncoder.forward adds the positions
	}
	inner := cfg.optional(0, "mlp_dim")
	if inner == 0 {
		inner = int64(min(cfg.float(4, "mlp_ratio")*float64(hidden), maxDim))
	}
	if inner < 1 {
		cfg.fail("mlp_ratio", "%v makes no width of %d", cfg.float(4, "mlp_ratio"), hidden)
		return
	}
	mlp := feedForward{dim: hidden, hidden: inner, activation: cfg.str("gelu", "hidden_act"), bias: true, up: "lin1", down: "lin2"}.part()
	global := cfg.numbers("global_attn_indexes")
	for i := range cfg.count(0, "num_hidden_layers") {
		name, window := indexed(dot(path, "layers"), i), side(cfg, 14, "window_size")
		if slices.Contains(global, float64(i)) {
			window = 0
		}
		modules.unit(name, func() { model.block(modules, name, hidden, window, mlp, extra) })
		extra = nil
	}
	conv1 := modules.add(dot(path, "neck.conv1"), modelgraph.Conv{In: hidden, Out: out, Kernel: 1}, []string{modules.hidden}, tensor("weight", out, hidden, 1, 1)).Name
	norm := addLayerNorm(modules, dot(path, "neck.layer_norm1"), out, conv1)
	conv2 := modules.add(dot(path, "neck.conv2"), modelgraph.Conv{In: out, Out: out, Kernel: 9}, []string{norm}, tensor("weight", out, out, 3, 3)).Name
	model.image = addLayerNorm(modules, dot(path, "neck.layer_norm2"), out, conv2)
}

func (model *sam) patchEmbedding(modules *builder, name string, hidden int64) {
	channels, pixels := model.vision.pos(0, "num_channels"), model.grid.height*model.grid.width
	modules.hidden = modules.add(name, modelgraph.Conv{In: channels, Out: hidden, Kernel: pixels, Stride: pixels}, nil,
		tensor("weight", hidden, channels, model.grid.height, model.grid.width), tensor("bias", hidden)).Name
}

// block is SamVisionLayer: attention to all of the image, or within square windows, padded at the
// edges. Biases for the rows and the columns between two tokens are added to the scores.
func (model *sam) block(modules *builder, name string, hidden, window int64, mlp part, extra []string) {
	cfg := model.vision
	op := visionAttention(cfg, hidden, 0, "num_attention_heads")
	op.Fused = true
	rows, columns := model.grid.rows, model.grid.columns
	if window > 0 {
		op.Packed, op.Window = true, window*window
		rows, columns = window, window
	}
	first, attention, second := dot(name, "layer_norm1"), dot(name, "attn"), dot(name, "layer_norm2")
	residual := modules.hidden
	modules.add(first, modelgraph.Norm{Dim: hidden, Style: modelgraph.LayerNorm, Epsilon: modules.epsilon}, append([]string{residual}, extra...), normParams("", hidden, true)...)
	padded := fixedStream(((model.grid.rows + rows - 1) / rows * rows) * ((model.grid.columns + columns - 1) / columns * columns))
	modules.on(padded, func() {
		if cfg.flag("use_rel_pos") {
			op.ScoreBias = "decomposed"
			modules.add(dot(attention, "rel_pos_h"), modelgraph.Parameter{}, nil, tensor("", 2*rows-1, op.HeadDim))
			modules.add(dot(attention, "rel_pos_w"), modelgraph.Parameter{}, nil, tensor("", 2*columns-1, op.HeadDim))
		}
		modules.add(attention, op, []string{first, residual}, join(
			linearParams("qkv", hidden, 3*hidden, cfg.flag("qkv_bias")), linearParams("proj", hidden, hidden, true))...)
	})
	addLayerNorm(modules, second, hidden, attention)
	modules.hidden = modules.add(dot(name, "mlp"), mlp.op, []string{second, attention}, mlp.params...).Name
}

// promptEncoder is SamPromptEncoder: rows for kinds of points, and convolutions over given masks.
// Here no masks are given.
func (model *sam) promptEncoder(modules *builder, path string) {
	cfg := model.prompts
	hidden, wide := cfg.pos(256, "hidden_size"), cfg.pos(16, "mask_input_channels")
	narrow := wide / 4
	if narrow*4 != wide {
		cfg.fail("mask_input_channels", "%d is no multiple of 4", wide)
		return
	}
	bare := func(name string, tensors ...modelgraph.Tensor) {
		modules.add(dot(path, name), modelgraph.Parameter{}, nil, tensors...)
	}
	convolution := func(name string, in, out, kernel int64) {
		bare(dot("mask_embed", name), tensor("weight", out, in, kernel, kernel), tensor("bias", out))
	}
	convolution("conv1", 1, narrow, 2)
	convolution("conv2", narrow, wide, 2)
	convolution("conv3", wide, hidden, 1)
	bare("mask_embed.layer_norm1", normParams("", narrow, true)...)
	bare("mask_embed.layer_norm2", normParams("", wide, true)...)
	bare("no_mask_embed", tensor("weight", 1, hidden))
	for i := range cfg.count(4, "num_point_embeddings") {
		modules.unit(dot(path, fmt.Sprintf("point_embed.%d", i)), func() { bare(fmt.Sprintf("point_embed.%d", i), tensor("weight", 1, hidden)) })
	}
	bare("not_a_point_embed", tensor("weight", 1, hidden))
}
