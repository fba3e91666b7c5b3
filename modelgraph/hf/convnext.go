package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"convnext"}, table: true, class: "ConvNextForImageClassification", classes: []string{"ConvNextForImageClassification", "ConvNextModel"},
		build:  convNext,
		maxSeq: func(*config) int64 { return 0 },
	})
}

// fixedStream has count tokens a sequence, independent of its text.
func fixedStream(count int64) modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: max(1, count)}
}

// stages reads a list such as depths, with one entry a stage.
func stages(cfg *config, name string, count int64, def []int64) []int64 {
	sizes := def
	if cfg.has(name) {
		sizes = cfg.dims(name)
	}
	if int64(len(sizes)) != count || min(count, maxLayers) != count {
		cfg.fail(name, "%d entries for %d stages", len(sizes), count)
		return make([]int64, min(max(0, count), maxLayers))
	}
	return sizes
}

// shallow faults depths that are together more than any model's.
func shallow(cfg *config, name string, depths []int64) {
	total := int64(0)
	for _, depth := range depths {
		if total += min(depth, maxLayers+1); total > maxLayers {
			cfg.fail(name, "the stages have more than %d layers", maxLayers)
			return
		}
	}
}

// convNext is modeling_convnext.py: stages of convolutions. A convolution that halves rows and
// columns precedes each stage but the first.
func convNext(modules *builder, cfg *config, class string) {
	path := "convnext"
	if baseClass(class) {
		path = ""
	}
	count, grid, channels := cfg.pos(0, "num_stages"), patches(cfg, 224, 4), cfg.pos(0, "num_channels")
	dims := stages(cfg, "hidden_sizes", count, []int64{96, 192, 384, 768})
	depths := stages(cfg, "depths", count, []int64{3, 3, 9, 3})
	shallow(cfg, "depths", depths)
	scaled := cfg.float(0, "layer_scale_init_value") > 0
	if cfg.fault() != nil {
		return
	}
	conv := func(name string, in, out, side, kernel int64, groups int64, input string) string {
		op := modelgraph.Conv{In: in, Out: out, Kernel: kernel * kernel}
		if side > 1 {
			op.Stride = side * side
		}
		var inputs []string
		if input != "" {
			inputs = []string{input}
		}
		return modules.add(name, op, inputs, tensor("weight", out, in/groups, kernel, kernel), tensor("bias", out)).Name
	}
	tokens := grid.count()
	modules.on(fixedStream(tokens), func() {
		patch := conv(dot(path, "embeddings.patch_embeddings"), channels, dims[0], grid.height, grid.height, 1, "")
		modules.hidden = addLayerNorm(modules, dot(path, "embeddings.layernorm"), dims[0], patch)
	})
	dim := dims[0]
	for i := range dims {
		stage := indexed(dot(path, "encoder.stages"), int64(i))
		modules.unit(stage, func() {
			if i > 0 {
				norm := addLayerNorm(modules, dot(stage, "downsampling_layer.0"), dim, modules.hidden)
				tokens = max(1, tokens/4)
				modules.stream = fixedStream(tokens)
				modules.hidden = conv(dot(stage, "downsampling_layer.1"), dim, dims[i], 2, 2, 1, norm)
				dim = dims[i]
			}
			modules.on(fixedStream(tokens), func() {
				for j := range depths[i] {
					convNextLayer(modules, indexed(dot(stage, "layers"), j), dim, cfg.str("gelu", "hidden_act"), scaled, conv)
				}
			})
		})
	}
	modules.on(fixedStream(1), func() {
		modules.hidden = addLayerNorm(modules, dot(path, "layernorm"), dim, modules.hidden)
		if labels := imageLabels(cfg); !baseClass(class) && labels > 0 {
			addClassHead(modules, "classifier", dim, labels, true, modules.hidden)
		}
	})
}

// convNextLayer is ConvNextLayer: a depthwise convolution, a norm, and two matrices.
func convNextLayer(modules *builder, name string, dim int64, activation string, scaled bool, conv func(name string, in, out, side, kernel, groups int64, input string) string) {
	residual := modules.hidden
	if scaled {
		modules.add(dot(name, "layer_scale_parameter"), modelgraph.Parameter{}, nil, tensor("", dim))
	}
	wide := conv(dot(name, "dwconv"), dim, dim, 1, 7, dim, residual)
	norm := addLayerNorm(modules, dot(name, "layernorm"), dim, wide)
	up := modules.add(dot(name, "pwconv1"), modelgraph.Linear{In: dim, Out: 4 * dim, Activation: activation, Extra: 1}, []string{norm}, linearParams("", dim, 4*dim, true)...).Name
	modules.hidden = modules.add(dot(name, "pwconv2"), modelgraph.Linear{In: 4 * dim, Out: dim, LayerScale: scaled}, []string{up, residual}, linearParams("", 4*dim, dim, true)...).Name
}
