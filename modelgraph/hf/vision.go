package hf

import "github.com/devmap-dev/devmap/modelgraph"

// maxSide bounds the sides of images and patches, in pixels.
const maxSide = 1 << 16

// imageStream is n tokens an image.
func imageStream(n int64) modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Image, Tokens: n}
}

// side reads a length in pixels or patches, from 1 to maxSide.
func side(c *config, def int64, name string) int64 {
	n := c.pos(def, name)
	if n > maxSide {
		c.fail(name, "%d is more than %d", n, maxSide)
		return 1
	}
	return n
}

// heightWidth reads a height and a width: a list of two, or one number for both.
func heightWidth(c *config, def int64, name string) (h, w int64) {
	ds := c.dims(name)
	switch len(ds) {
	case 0:
		if c.has(name) && c.fault() == nil {
			c.fail(name, "an empty list is not a height and a width")
		}
		return def, def
	case 1:
		ds = append(ds, ds[0])
	case 2:
	default:
		c.fail(name, "%d numbers are not a height and a width", len(ds))
		return def, def
	}
	if min(ds[0], ds[1]) < 1 || max(ds[0], ds[1]) > maxSide {
		c.fail(name, "%d × %d are not sides from 1 to %d", ds[0], ds[1], maxSide)
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
func patches(c *config, image, patch int64) patchGrid {
	ih, iw := heightWidth(c, image, "image_size")
	ph, pw := heightWidth(c, patch, "patch_size")
	g := patchGrid{rows: ih / ph, columns: iw / pw, height: ph, width: pw}
	if g.rows == 0 || g.columns == 0 {
		c.fail("image_size", "%d × %d pixels hold no patch of %d × %d", ih, iw, ph, pw)
		return patchGrid{rows: 1, columns: 1, height: 1, width: 1}
	}
	return g
}

func (g patchGrid) count() int64 { return g.rows * g.columns }

// embed adds the convolution that makes the patches.
func (g patchGrid) embed(b *builder, name string, channels, dim int64) string {
	var conv *modelgraph.Layer
	b.on(imageStream(g.count()), func() {
		conv = b.add(name, modelgraph.Conv{In: channels, Out: dim, Kernel: g.height * g.width, Stride: g.height * g.width}, nil,
			tensor("weight", dim, channels, g.height, g.width), tensor("bias", dim))
	})
	return conv.Name
}

// visionAttention is attention of every patch to every patch. As in the
// framework, heads must divide the width.
func visionAttention(c *config, dim, heads int64, name string) modelgraph.Attention {
	a := equalHeads(c, dim, heads, name)
	a.Bidirectional = true
	return a
}

// denseMLP is fc1 and fc2 with biases.
func denseMLP(c *config, dim, hidden int64, activation string) part {
	f := c.pos(hidden, "intermediate_size")
	return part{
		op:     modelgraph.MLP{Dim: dim, Hidden: f, Activation: c.str(activation, "hidden_act")},
		params: join(linear("fc1", dim, f, true), linear("fc2", f, dim, true)),
	}
}

// styleParams are a norm's tensors: a LayerNorm has a bias too.
func styleParams(style modelgraph.NormStyle, n int64) []modelgraph.Tensor {
	return normParams("", n, style == modelgraph.LayerNorm)
}

// addLinear adds nn.Linear with bias and what follows it, and returns its
// name.
func addLinear(b *builder, name string, in, out int64, activation, input string) string {
	op := modelgraph.Linear{In: in, Out: out, Activation: activation}
	return b.add(name, op, []string{input}, linear("", in, out, true)...).Name
}
