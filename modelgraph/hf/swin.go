package hf

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"swin"}, table: true, class: "SwinForImageClassification",
		classes: []string{"SwinForImageClassification", "SwinModel", "SwinForMaskedImageModeling"},
		build:   swin,
		maxSeq:  func(*config) int64 { return 0 },
	})
}

// swin is modeling_swin.py: stages of attention within square windows. A matrix that merges four
// tokens follows each but the last.
func swin(modules *builder, cfg *config, class string) {
	path := "swin"
	if baseClass(class) {
		path = ""
	}
	grid, channels, dim := patches(cfg, 224, 4), cfg.pos(0, "num_channels"), cfg.pos(0, "embed_dim")
	depths := cfg.dims("depths")
	heads := stages(cfg, "num_heads", int64(len(depths)), nil)
	shallow(cfg, "depths", depths)
	if len(depths) == 0 || len(depths) > 20 {
		cfg.fail("depths", "%d stages are not from 1 to 20", len(depths))
	}
	if cfg.fault() != nil {
		return
	}
	tokens := grid.count()
	modules.on(fixedStream(tokens), func() { swinEmbeddings(modules, cfg, dot(path, "embeddings"), grid, channels, dim, class) })
	for i, depth := range depths {
		stage := indexed(dot(path, "encoder.layers"), int64(i))
		modules.unit(stage, func() {
			modules.on(fixedStream(tokens), func() {
				for j := range depth {
					swinBlock(modules, cfg, indexed(dot(stage, "blocks"), j), dim, heads[i], fmt.Sprintf("num_heads[%d]", i), j%2 == 1 && min(grid.rows, grid.columns)>>i > side(cfg, 7, "window_size"))
				}
			})
			if i == len(depths)-1 {
				return
			}
			tokens = max(1, tokens/4)
			modules.on(fixedStream(tokens), func() {
				norm := dot(stage, "downsample.norm")
				reduction := modules.add(dot(stage, "downsample.reduction"), modelgraph.Linear{In: 4 * dim, Out: 2 * dim}, []string{norm}, linearParams("", 4*dim, 2*dim, false)...).Name
				addLayerNorm(modules, norm, 4*dim, modules.hidden)
				modules.hidden = reduction
			})
			dim = cfg.product("embed_dim", 2, dim)
		})
	}
	modules.on(fixedStream(tokens), func() {
		modules.hidden = addLayerNorm(modules, dot(path, "layernorm"), dim, modules.hidden)
		switch labels := imageLabels(cfg); {
		case class == "SwinForMaskedImageModeling":
			stride := side(cfg, 32, "encoder_stride")
			out := sizeProduct(cfg, "encoder_stride", stride, stride, channels)
			modules.add("decoder.0", modelgraph.Conv{In: dim, Out: out, Kernel: 1}, []string{modules.hidden}, tensor("weight", out, dim, 1, 1), tensor("bias", out))
		case !baseClass(class) && labels > 0:
			addClassHead(modules, "classifier", dim, labels, true, modules.hidden)
		}
	})
}

// swinEmbeddings is SwinEmbeddings; its bare parameters are units.
func swinEmbeddings(modules *builder, cfg *config, path string, grid patchGrid, channels, dim int64, class string) {
	var extra []string
	if class == "SwinForMaskedImageModeling" {
		modules.add(dot(path, "mask_token"), modelgraph.Parameter{}, nil, tensor("", 1, 1, dim))
	}
	if cfg.flag("use_absolute_embeddings") {
		extra = append(extra, modules.add(dot(path, "position_embeddings"), modelgraph.Parameter{}, nil, tensor("", 1, grid.count(), dim)).Name)
	}
	op := modelgraph.Conv{In: channels, Out: dim, Kernel: grid.height * grid.width, Stride: grid.height * grid.width}
	patch := modules.add(dot(path, "patch_embeddings.projection"), op, nil, tensor("weight", dim, channels, grid.height, grid.width), tensor("bias", dim)).Name
	norm := modelgraph.Norm{Dim: dim, Style: modelgraph.LayerNorm}
	modules.hidden = modules.add(dot(path, "norm"), norm, append([]string{patch}, extra...), normParams("", dim, true)...).Name
}

// swinBlock is SwinLayer. Windows of every second one are shifted, if there is more than one.
func swinBlock(modules *builder, cfg *config, name string, dim, heads int64, field string, shifted bool) {
	if heads == 0 || dim%max(1, heads) != 0 {
		cfg.fail(field, "%d heads do not divide the width %d", heads, dim)
		return
	}
	window, bias := side(cfg, 7, "window_size"), cfg.flag("qkv_bias")
	op := modelgraph.Attention{Dim: dim, Heads: heads, KVHeads: heads, HeadDim: dim / heads, Bidirectional: true, Packed: true, Window: window * window, ScoreBias: "windows"}
	if shifted {
		op.ScoreBias = "shifted"
	}
	attention, mlp := dot(name, "attention"), dot(name, "mlp")
	before, after, residual := dot(name, "layernorm_before"), dot(name, "layernorm_after"), modules.hidden
	rows := (2*window - 1) * (2*window - 1)
	modules.add(attention, op, []string{before, residual}, join(
		linearParams("q_proj", dim, dim, bias), linearParams("k_proj", dim, dim, bias), linearParams("v_proj", dim, dim, bias), linearParams("o_proj", dim, dim, true))...)
	// A number a head for every distance of two tokens of a window.
	table := modules.add(dot(attention, "relative_position_bias"), modelgraph.Parameter{}, nil, tensor("relative_position_bias_table", rows, heads))
	table.Buffers = []modelgraph.Tensor{buffer("relative_position_index", int64Type, window*window*window*window)}
	addLayerNorm(modules, before, dim, residual)
	addLayerNorm(modules, after, dim, attention)
	inner := int64(cfg.float(4, "mlp_ratio") * float64(dim))
	if inner < 1 || inner > maxDim {
		cfg.fail("mlp_ratio", "%v makes no width of %d", cfg.float(4, "mlp_ratio"), dim)
		return
	}
	// Variables of forward: shortcut, hidden_states_windows, attention_output and attention_windows.
	p := feedForward{dim: dim, hidden: inner, activation: cfg.str("gelu", "hidden_act"), bias: true, up: "fc1", down: "fc2", more: 3}.part()
	modules.hidden = modules.add(mlp, p.op, []string{after, attention}, p.params...).Name
}
