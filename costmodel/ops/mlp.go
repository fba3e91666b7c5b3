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
	c.Step.Saved = e*tensors*fN + s.casts(linears, op.Dim, s.Weights)
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
	matrix := s.w() * op.Dim * op.Hidden
	c.peak(
		// the product's gradient, when gradients of both factors are made;
		// under autocast down's backward (AddmmBackward0, MmBackward0) has
		// released its 16-bit weight, and autocast_mode.cpp's cache is cleared
		moment{stream + 2*e*fN - s.casts(0, 0, op.Dim*op.Hidden), matrix},
		// every matrix has its gradient, the saved tensors are gone
		moment{3*stream - e*tensors*fN, s.NewGrads},
	)
	return c
}
