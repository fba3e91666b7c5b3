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
	c := dense(op.In*n, op.Out*n, act, 2*float64(n)*float64(op.In)*float64(op.Out), s)
	if s.InputKept {
		c.Step.Saved -= s.e() * op.In * n
	}
	return c
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
