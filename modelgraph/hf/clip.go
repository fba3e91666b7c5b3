package hf

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
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
	grid        patchGrid
	// build adds the tower at a path and returns the framework's hidden states and the output.
	build func(modules *builder, path string) (states []string, last string)
	// Side and multiple are as in [modelgraph.Stream].
	side, multiple int64
}

// imageTowers are the towers that a vision_config may name.
var imageTowers = map[string]func(*config) *imageTower{
	"clip_vision_model": clipTower, "siglip_vision_model": siglipTower, "pixtral": pixtralTower,
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

// tableTower reads a tower whose class has a reviewed line: the line gives its layers. Its blocks are
// encoder.layers, extra are the tokens before the patches.
func tableTower(cfg *config, kind string, extra int64) *imageTower {
	cfg.kind(kind)
	plain := cfg
	cfg = cfg.filled(kind)
	grid := patches(cfg, 224, 16)
	tower := &imageTower{dim: cfg.pos(1, "hidden_size"), tokens: grid.count() + extra, extra: extra, grid: grid}
	// The readers of fields name a field without a size. The table's errors name it less well.
	visionAttention(cfg, tower.dim, 1, "num_attention_heads")
	denseMLP(cfg, tower.dim, 1, "")
	cfg.count(1, "num_hidden_layers")
	cfg.pos(1, "num_channels")
	if kind == "siglip_vision_model" {
		cfg.has("vision_use_head") // its config class does not declare it
	}
	graph := partOfTable(plain, kind)
	tower.build = func(modules *builder, path string) (states []string, last string) {
		if graph == nil {
			return []string{""}, ""
		}
		for _, layer := range graph.Layers {
			if strings.HasPrefix(layer.Name, "encoder.layers.") && strings.HasSuffix(layer.Name, ".layer_norm1") || layer.Name == "post_layernorm" {
				states = append(states, dot(path, layer.Inputs[0]))
			}
		}
		modules.take(graph, path)
		return states, dot(path, "post_layernorm")
	}
	return tower
}

// partOfTable is the graph of a model inside another, by the reviewed line of its type's class. Nil,
// with a fault, if the line does not hold for its config.
func partOfTable(cfg *config, kind string) *modelgraph.Graph {
	if cfg.fault() != nil {
		return nil
	}
	in := cfg.shared.in
	class, err := in.ClassOf(cfg.file, kind, nil)
	var tree *tables.Tree
	if err == nil {
		tree, class, err = in.Tree(cfg.file, class, in.ConfigOf(kind), plainMembers(cfg), modelgraph.F32)
	}
	var graph *modelgraph.Graph
	if err == nil {
		graph, _, err = tree.Graph(class, modelgraph.F32, kind, in)
	}
	switch {
	case err != nil:
		var fault *tables.Error
		if errors.As(err, &fault) {
			fault.File, fault.Field = cfg.file, cfg.prefix+fault.Field
		}
		cfg.shared.fault = err
		return nil
	case !tree.Reviewed:
		cfg.fail("model_type", "what a %q of this config computes is "+notKnown, kind)
		return nil
	}
	for name := range cfg.members {
		if _, extra := tree.Root.Extra[name]; !extra {
			cfg.shared.read[cfg.prefix+name] = true
		}
	}
	return graph
}

// take adds the layers of a model inside at a path. Parameters take the outer model's type.
func (modules *builder) take(graph *modelgraph.Graph, path string) {
	for _, layer := range graph.Layers {
		layer.Name, layer.Learned, layer.Params = dot(path, layer.Name), learned.Steps{}, slices.Clone(layer.Params)
		if layer.Unit != "" {
			layer.Unit = dot(path, layer.Unit)
		}
		layer.Inputs = slices.Clone(layer.Inputs)
		for i, input := range layer.Inputs {
			layer.Inputs[i] = dot(path, input)
		}
		for i := range layer.Params {
			layer.Params[i].DType = noType
		}
		modules.layers = append(modules.layers, layer)
	}
}

func clipTower(cfg *config) *imageTower { return tableTower(cfg, "clip_vision_model", 1) }

func siglipTower(cfg *config) *imageTower { return tableTower(cfg, "siglip_vision_model", 0) }

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
