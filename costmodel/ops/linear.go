package ops

import "github.com/devmap-dev/devmap/modelgraph"

// linear is one projection outside a block.
func linear(op modelgraph.Linear, s *Shape) Cost {
	n := s.Tokens
	if op.Pooled {
		n = s.Batch
	}
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	return dense(op.In*n, op.Out*n, act, 2*float64(n)*float64(op.In)*float64(op.Out), s)
}

// conv is a convolution: its input is kept for the weight's gradient.
func conv(op modelgraph.Conv, s *Shape) Cost {
	n := s.Tokens * max(1, op.TokenRatio)
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	return dense(op.In*n, op.Out*n, act, 2*float64(n)*float64(op.In*op.Kernel)*float64(op.Out), s)
}

// dense is a product with in elements going in and out coming out, followed
// by an activation that keeps act tensors.
func dense(in, out, act int64, flops float64, s *Shape) Cost {
	e := s.e()
	c := Cost{Known: true, Output: s.r() * out, FLOPs: flops}
	c.Step.Saved = e * (in + act*out)
	c.Step.Forward = e*(in+(1+act)*out) + s.r()*out
	c.peak(moment{e * (in + 2*out), s.NewGrads, s.NewGrads})
	return c
}

// rotary makes cos and sin [length, head width] once a forward. Where layers
// get no copies of their own, they are kept here, once.
func rotary(op modelgraph.Rotary, s *Shape) Cost {
	size := s.Length * op.HeadDim
	c := Cost{Known: true, Output: 2 * s.r() * size, FLOPs: 4 * float64(size)}
	c.Step.Forward = (3*4 + 2*s.r()) * size
	if !s.RotaryCopies {
		c.Step.Saved, c.Step.Held = c.Output, c.Output
	}
	return c
}
