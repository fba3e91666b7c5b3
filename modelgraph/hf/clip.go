package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// clipOrder is the order of a CLIP block's modules.
var clipOrder = []string{"self_attn", "layer_norm1", "mlp", "layer_norm2"}

// clipStack are the blocks of a CLIP or SigLIP encoder (modeling_clip.py: CLIPEncoder).
func clipStack(cfg *config, hidden int64, order []string) *visionStack {
	attn := part{op: visionAttention(cfg, hidden, 0, "num_attention_heads"), params: join(
		linearParams("k_proj", hidden, hidden, true), linearParams("v_proj", hidden, hidden, true),
		linearParams("q_proj", hidden, hidden, true), linearParams("out_proj", hidden, hidden, true))}
	return &visionStack{
		dim: hidden, layers: cfg.count(0, "num_hidden_layers"), norm: modelgraph.LayerNorm,
		attention: func(int64) part { return attn }, mlp: denseMLP(cfg, hidden, 0, ""),
		attnNorm: "layer_norm1", attn: "self_attn", mlpNorm: "layer_norm2", mlpName: "mlp", order: order,
	}
}

// imageTower is a tower whose hidden states a projector may read.
type imageTower struct {
	dim, tokens int64 // width; tokens an image, a class token among them
	extra       int64 // tokens before the patches
	// build adds the tower at a path and returns the framework's hidden states and the output.
	build func(modules *builder, path string) (states []string, last string)
	// Side and multiple are as in [modelgraph.Stream].
	side, multiple int64
}

// imageTowers are the towers that a vision_config may name.
var imageTowers = map[string]func(*config) *imageTower{
	"clip_vision_model": clipTower, "siglip_vision_model": siglipImages, "pixtral": pixtralTower,
}

// imageTowerOf reads a vision_config of any of the types.
func imageTowerOf(cfg *config) *imageTower {
	kind := cfg.name("model_type")
	if cfg.class != nil {
		kind = cfg.class.Type
	}
	if read := imageTowers[kind]; read != nil {
		return read(cfg)
	}
	cfg.fail("model_type", "%q is not a vision tower that is known here (known: %s)", clipName(kind), strings.Join(slices.Sorted(maps.Keys(imageTowers)), ", "))
	return clipTower(newConfig(cfg.file, "", nil, cfg.shared).filled("clip_vision_model"))
}

// clipTower reads a CLIPVisionConfig.
func clipTower(cfg *config) *imageTower {
	hidden, grid, channels := cfg.pos(768, "hidden_size"), patches(cfg, 224, 32), cfg.pos(3, "num_channels")
	stack := clipStack(cfg, hidden, clipOrder)
	tower := &imageTower{dim: hidden, tokens: grid.count() + 1, extra: 1}
	tower.build = func(modules *builder, path string) (states []string, last string) {
		modules.on(imageStream(tower.tokens), func() {
			embeddings := dot(path, "embeddings")
			modules.unit(embeddings, func() {
				class := modules.add(dot(embeddings, "class_embedding"), modelgraph.Parameter{}, nil, tensor("", hidden)).Name
				patch := grid.embedWith(modules, dot(embeddings, "patch_embedding"), channels, hidden, false)
				places := addRows(modules, dot(embeddings, "position_embedding"), modelgraph.Embedding{Vocab: grid.count() + 1, Dim: hidden}, patch)
				modules.layers[len(modules.layers)-1].Inputs = append(modules.layers[len(modules.layers)-1].Inputs, class)
				modules.add(dot(embeddings, "position_ids"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{buffer("", int64Type, 1, grid.count()+1)}
				modules.hidden = places
			})
			modules.hidden = addLayerNorm(modules, dot(path, "pre_layrnorm"), hidden, modules.hidden)
			states = stack.build(modules, dot(path, "encoder.layers"), true)
			last = addLayerNorm(modules, dot(path, "post_layernorm"), hidden, modules.hidden)
		})
		return states, last
	}
	return tower
}

// siglipImages reads a SiglipVisionConfig as a tower of any model.
func siglipImages(cfg *config) *imageTower {
	tower := siglipTower(cfg)
	return &imageTower{dim: tower.dim, tokens: tower.grid.count(), build: func(modules *builder, path string) ([]string, string) {
		last := tower.build(modules, path)
		return tower.states, last
	}}
}

// pixtralTower reads a PixtralVisionConfig (modeling_pixtral.py: PixtralVisionModel): images of any
// size, rows and columns turned.
func pixtralTower(cfg *config) *imageTower {
	hidden, grid, channels := cfg.pos(1024, "hidden_size"), patches(cfg, 1024, 16), cfg.pos(3, "num_channels")
	op := visionAttention(cfg, hidden, 16, "num_attention_heads")
	op.Rope, op.Packed = true, true
	mlp := gatedMLP(cfg, hidden, 4096, "gelu").part()
	params := join(linearParams("k_proj", hidden, hidden, false), linearParams("v_proj", hidden, hidden, false),
		linearParams("q_proj", hidden, hidden, false), linearParams("o_proj", hidden, hidden, false))
	stack := &visionStack{
		dim: hidden, layers: cfg.count(24, "num_hidden_layers"), norm: modelgraph.RMSNorm,
		attention: func(int64) part { return part{op: op, params: params} }, mlp: mlp,
		attnNorm: "attention_norm", attn: "attention", mlpNorm: "ffn_norm", mlpName: "feed_forward",
		order: []string{"attention_norm", "feed_forward", "attention", "ffn_norm"},
	}
	rotaryDim := cfg.orNull(0, op.HeadDim, "head_dim")
	tower := &imageTower{dim: hidden, tokens: grid.count(), side: grid.height, multiple: grid.height}
	tower.build = func(modules *builder, path string) (states []string, last string) {
		stream := imageStream(tower.tokens)
		stream.Side, stream.Multiple = tower.side, tower.multiple
		modules.on(stream, func() {
			op := modelgraph.Conv{In: channels, Out: hidden, Kernel: grid.height * grid.width, Stride: grid.height * grid.width}
			patch := modules.add(dot(path, "patch_conv"), op, nil, tensor("weight", hidden, channels, grid.height, grid.width)).Name
			modules.hidden = dot(path, "ln_pre")
			modules.add(modules.hidden, modelgraph.Norm{Dim: hidden}, []string{patch}, tensor("weight", hidden))
			states = stack.build(modules, dot(path, "transformer.layers"), true)
			last = modules.hidden
			rows := rotary(rotaryDim)
			modules.add(dot(path, "patch_positional_embedding"), modelgraph.Rotary{HeadDim: rotaryDim, Packed: true}, nil).Buffers = rows.Buffers
		})
		return states, last
	}
	return tower
}

func init() { // the table has no such class
	register(family{
		types: []string{"clip_vision_model"}, table: true, class: "CLIPVisionModel", classes: []string{"CLIPVisionModelWithProjection"},
		build: func(modules *builder, cfg *config, _ string) {
			tower := clipTower(cfg)
			_, image := tower.build(modules, "vision_model")
			modules.on(imageStream(1), func() {
				modules.add("visual_projection", modelgraph.Linear{In: tower.dim, Out: cfg.pos(0, "projection_dim"), Pooled: true}, []string{image}, linearParams("", tower.dim, cfg.pos(0, "projection_dim"), false)...)
			})
		},
		maxSeq: func(*config) int64 { return 0 },
	})
}
