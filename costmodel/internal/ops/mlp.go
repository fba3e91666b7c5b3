package ops

import "github.com/devmap-dev/devmap/modelgraph"

// activationExtra is how many tensors of the hidden width an activation
// keeps besides its output (torch.nn.functional, activations.py): a fused
// kernel its input; relu nothing; Python-level GELU approximations their
// intermediate results.
func activationExtra(name string) int64 {
	switch name {
	case "relu", "":
		return 0
	case "gelu_new", "gelu_fast":
		return 4
	case "relu2", "quick_gelu":
		return 2
	}
	return 1
}

// KeepsOutput reports that an activation's backward needs its output
// (derivatives.yaml of PyTorch: threshold_backward, tanh_backward), so that it
// is kept whoever reads it.
func KeepsOutput(activation string) bool {
	return activation == "relu" || activation == "tanh" || activation == "sigmoid"
}

// mlp follows modeling_llama.py LlamaMLP, down(act(gate(x)) · up(x)), and for
// Gated false fc2(act(fc1(x))).
func mlp(op modelgraph.MLP, s *Shape) Cost {
	e, n := s.e(), s.Tokens
	fN := op.Hidden * n
	stream := s.r() * op.Dim * n
	act := activationExtra(op.Activation)
	tensors, linears, mats := act+1, int64(1), int64(2) // kept; linears on the input; matrices
	working := act + 1
	if op.Gated {
		tensors, mats = act+3, 3 // and up, and the product
		working = max(act+2, 3)  // gate goes once its activation is there
		linears = 2
		if op.Fused {
			linears, working = 1, working+1
		}
	}
	c := Cost{Known: true, Output: stream, FLOPs: 2 * float64(n) * float64(mats*op.Dim*op.Hidden)}
	c.Step.Saved = e*tensors*fN + s.casts(linears, op.Dim, 0)
	c.mlpCasts(op, s, mats)
	c.Step.Forward = 2*stream + e*op.Dim*n + e*working*fN
	if s.Train {
		c.Step.Forward = max(c.Step.Forward, 2*stream+e*op.Dim*n+c.Step.Saved)
	}
	if op.LayerScale {
		c.Step.Saved += s.r() * op.Dim * n
	}
	if op.Dropout {
		c.Step.Saved += op.Dim * n // native_dropout's mask, a byte an element
	}
	matrix := min(s.NewGrads, s.w()*op.Dim*op.Hidden)
	in := matrix // of the first linear layer, the last to get a gradient
	if op.Fused {
		in = min(s.NewGrads, 2*matrix)
	}
	factors := int64(2)
	if !op.Gated && act <= 1 {
		factors = 1 // one kernel with one input
	}
	c.peak(
		// down's own backward
		moment{stream + e*fN, matrix, matrix},
		// the product's gradient, when gradients of both factors are made;
		// under autocast down's backward (AddmmBackward0, MmBackward0) has
		// released its 16-bit weight, and autocast_mode.cpp's cache is cleared
		moment{stream + factors*e*fN - s.casts(0, 0, op.Dim*op.Hidden), matrix, 0},
		// every matrix has its gradient, the saved tensors are gone
		moment{3*stream - e*tensors*fN, s.NewGrads, in},
	)
	if biases := s.NewGrads - 2*matrix; !op.Gated && biases > 0 {
		// the sums of fc2's and of fc1's bias gradient; by the latter fc2's
		// output, which a scale keeps, is gone too
		left := 2*stream + e*fN - e*tensors*fN
		if op.LayerScale {
			left -= stream
		}
		c.peak(
			moment{stream + e*fN + reduceBuffer(n, op.Dim), matrix, matrix},
			moment{left + reduceBuffer(n, op.Hidden), s.NewGrads, in},
		)
	}
	if op.Gated && !op.Fused {
		// up's backward: product, up and activation are gone, the gradients of
		// the latter two there; then gate's, with its own left of the three; under
		// autocast a linear layer's casts go with its backward
		c.peak(
			moment{2*stream - e*fN - s.casts(0, 0, op.Dim*op.Hidden), min(s.NewGrads, 2*matrix), matrix},
			moment{3*stream + e*fN - e*tensors*fN - s.casts(1, op.Dim, 2*op.Dim*op.Hidden), s.NewGrads, matrix},
		)
	}
	return c
}

// mlpCasts is what autocast makes a layer of mats matrices keep besides: their
// 16-bit copies (biases are cast, but not kept), with what the allocator adds
// to these, as slack does for the rest.
func (c *Cost) mlpCasts(op modelgraph.MLP, s *Shape, mats int64) {
	if !s.Precision.Mixed() || !s.Train {
		return
	}
	matrix := op.Dim * op.Hidden
	c.Casts = s.casts(0, 0, mats*matrix)
	c.Step.Saved += c.Casts
	if !s.Recompute && !s.Frozen {
		c.Step.Saved += mats * remainder(2*matrix)
	}
	if op.Activation == "gelu_new" {
		// activations.py NewGELUActivation: autocast runs torch.pow in fp32, so
		// that x, tanh and 1 + tanh are kept in 4 bytes; 0.5·x and the result's
		// cast in 2.
		c.Step.Saved += 6 * op.Hidden * s.Tokens
	}
}
