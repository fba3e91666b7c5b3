package ops

import "github.com/devmap-dev/devmap/modelgraph"

// norm follows modeling_llama.py LlamaRMSNorm.forward (fp32 copy of the
// input, normalised tensor cast back, product with the weight),
// modeling_gemma.py GemmaRMSNorm (all in fp32, one cast at the end), and
// torch.nn.LayerNorm (input, mean and 1/σ).
func norm(op modelgraph.Norm, s *Shape) Cost {
	hN := op.Dim * s.Tokens
	c := Cost{Known: true, FLOPs: 5 * float64(hN), Output: s.r() * hN}
	out := s.e() * hN // the next linear layer's input
	if s.Precision.Mixed() || op.Post || s.HeadAlone {
		out = 0 // kept by the head, on its device; cast once per linear layer there; a post-norm is only added
	}
	switch op.Style {
	case modelgraph.LayerNorm:
		c.Step.Saved = s.r()*hN + 8*s.Tokens + out
		c.Step.Forward = c.Step.Saved + 2*s.r()*hN
		c.peak(moment{3 * s.r() * hN, s.NewGrads, 0})
		return c
	case modelgraph.GemmaRMSNorm:
		c.Step.Saved = 8*hN + 4*s.Tokens + out + 4*op.Dim
	default:
		c.Step.Saved = 8*hN + 4*s.Tokens + out
		if s.half() {
			c.Step.Saved -= 2 * hN // the normalised tensor is kept in 16 bits
		}
	}
	// x² beside the fp32 copy, with the input and the residual alive.
	c.Step.Forward = max(c.Step.Saved, 8*hN) + s.r()*hN
	// pow's backward holds five fp32 tensors when one of the saved 8hN is
	// gone, above the residual's gradient.
	residual := s.r() * hN
	if op.Style == modelgraph.GemmaRMSNorm {
		if s.HeadAlone {
			residual = 0 // the head's gradient is cast and goes
		}
		// The gradient in fp32, that of the normalised tensor, and its product
		// with it, which is summed over the rows for 1 + weight. A checkpoint
		// has let go of the normalised tensor by then: what it makes again
		// lives as long as the node's apply, the sum comes after
		// (torch/csrc/autograd/engine.cpp, validate_outputs).
		summed := 12 * hN
		if s.Recompute && !s.HeadAlone {
			summed -= 4 * hN
		}
		c.peak(moment{residual + summed + reduceBuffer(s.Tokens, op.Dim), s.NewGrads, 0})
	}
	c.peak(moment{residual + 16*hN, s.NewGrads, 0})
	return c
}
