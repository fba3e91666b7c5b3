package hf

import "github.com/devmap-dev/devmap/modelgraph"

// maxSide bounds the sides of images and patches, in pixels.
const maxSide = 1 << 16

// imageStream is so many tokens an image.
func imageStream(count int64) modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Image, Tokens: count}
}

// side reads a length in pixels or patches, from 1 to maxSide.
func side(cfg *config, def int64, name string) int64 {
	count := cfg.pos(def, name)
	if count > maxSide {
		cfg.fail(name, "%d is more than %d", count, maxSide)
		return 1
	}
	return count
}

// heightWidth reads a height and a width: a list of two, or one number for both.
func heightWidth(cfg *config, def int64, name string) (hidden, width int64) {
	ds := cfg.dims(name)
	if cfg.class != nil && cfg.null(name) {
		cfg.fail(name, "null is not a height and a width")
	}
	switch len(ds) {
	case 0:
		if cfg.has(name) && cfg.fault() == nil {
			cfg.fail(name, "an empty list is not a height and a width")
		}
		return def, def
	case 1:
		ds = append(ds, ds[0])
	case 2:
	default:
		cfg.fail(name, "%d numbers are not a height and a width", len(ds))
		return def, def
	}
	if min(ds[0], ds[1]) < 1 || max(ds[0], ds[1]) > maxSide {
		cfg.fail(name, "%d × %d are not sides from 1 to %d", ds[0], ds[1], maxSide)
		return def, def
	}
	return ds[0], ds[1]
}

// patchGrid is an image cut into patches.
type patchGrid struct {
	rows, columns int64 // patches
	height, width int64 // of a patch, in pixels
}

// patches reads image_size and patch_size.
func patches(cfg *config, image, patch int64) patchGrid {
	ih, iw := heightWidth(cfg, image, "image_size")
	ph, pw := heightWidth(cfg, patch, "patch_size")
	grid := patchGrid{rows: ih / ph, columns: iw / pw, height: ph, width: pw}
	if grid.rows == 0 || grid.columns == 0 {
		cfg.fail("image_size", "%d × %d pixels hold no patch of %d × %d", ih, iw, ph, pw)
		return patchGrid{rows: 1, columns: 1, height: 1, width: 1}
	}
	return grid
}

func (grid patchGrid) count() int64 { return grid.rows * grid.columns }

// embed adds the convolution that makes the patches.
func (grid patchGrid) embed(modules *builder, name string, channels, dim int64) string {
	return grid.embedWith(modules, name, channels, dim, true)
}

// embedWith is embed with a bias or without.
func (grid patchGrid) embedWith(modules *builder, name string, channels, dim int64, bias bool) string {
	params := []modelgraph.Tensor{tensor("weight", dim, channels, grid.height, grid.width)}
	if bias {
		params = append(params, tensor("bias", dim))
	}
	var conv *modelgraph.Layer
	modules.on(imageStream(grid.count()), func() {
		conv = modules.add(name, modelgraph.Conv{In: channels, Out: dim, Kernel: grid.height * grid.width, Stride: grid.height * grid.width}, nil, params...)
	})
	return conv.Name
}

// visionAttention is attention of every patch to every patch. As in the framework, heads must
// divide the width.
func visionAttention(cfg *config, dim, heads int64, name string) modelgraph.Attention {
	a := equalHeads(cfg, dim, heads, name)
	a.Bidirectional = true
	return a
}

// denseMLP is fc1 and fc2 with biases.
func denseMLP(cfg *config, dim, hidden int64, activation string) part {
	inner := cfg.pos(hidden, "intermediate_size")
	return part{
		op:     modelgraph.MLP{Dim: dim, Hidden: inner, Activation: cfg.str(activation, "hidden_act")},
		params: join(linearParams("fc1", dim, inner, true), linearParams("fc2", inner, dim, true)),
	}
}

// styleParams are a norm's tensors: a LayerNorm has a bias too.
func styleParams(style modelgraph.NormStyle, count int64) []modelgraph.Tensor {
	return normParams("", count, style == modelgraph.LayerNorm)
}

// addLinear adds nn.Linear with bias and an activation, and returns its name.
func addLinear(modules *builder, name string, in, out int64, activation, input string) string {
	op := modelgraph.Linear{In: in, Out: out, Activation: activation}
	return modules.add(name, op, []string{input}, linearParams("", in, out, true)...).Name
}
