package ops

import "github.com/devmap-dev/devmap/modelgraph"

// moe follows integrations/moe.py's grouped_mm path: each token's TopK copies
// pass gate_up and down of their experts. Under autocast grouped_mm stays in
// fp32.
func moe(op modelgraph.MoE, s *Shape) Cost {
	e, n := s.r(), s.Tokens
	rows := op.TopK * n
	stream := s.r() * op.Dim * n
	c := Cost{Known: true, Output: stream}
	c.FLOPs = 2*float64(rows)*float64(3*op.Dim*op.Hidden) + 2*float64(n)*float64(op.Dim*op.Experts)
	// Gathered input, gate and up, activation, product, expert output; then
	// the router's softmax, indices, permutations and weights.
	c.Step.Saved = rows*(2*e*op.Dim+4*e*op.Hidden) + n*(4*op.Experts+41*op.TopK+4) + 512
	c.Casts = s.casts(0, 0, op.Dim*op.Experts) // the router is a linear layer
	c.Step.Saved += s.casts(1, op.Dim, 0) + c.Casts
	// The experts' output comes when gate and up are gone.
	work := rows * (e*op.Dim + 4*e*op.Hidden)
	if op.SharedHidden > 0 {
		own := *s
		own.Weights = 3 * op.Dim * op.SharedHidden
		shared := mlp(modelgraph.MLP{Dim: op.Dim, Hidden: op.SharedHidden, Gated: true, Activation: op.Activation}, &own)
		c.Step.Saved += shared.Step.Saved
		c.Casts += shared.Casts
		c.FLOPs += shared.FLOPs
	}
	c.Step.Forward = 2*stream + e*op.Dim*n + work
	if s.Train {
		// The experts' output times the fp32 weights, and that put back in order.
		c.Step.Forward = max(c.Step.Forward, stream+c.Step.Saved+8*rows*op.Dim)
	}
	if op.FP32Routing {
		// modeling_deepseek_v3.py DeepseekV3TopkRouter.forward: the router's
		// fp32 input and weight. Going back through the weighted sum, three
		// fp32 tensors of the experts' output exist at once: the gradient put
		// back in order, that of the output, and its product with the output.
		c.Step.Saved += 4 * op.Dim * (n + op.Experts)
		c.peak(moment{stream + 12*rows*op.Dim, 0, 0})
	}
	down := min(s.NewGrads, s.w()*op.Experts*op.Dim*op.Hidden)
	c.peak(
		// the product's gradient, and those of both factors; the experts' output
		// and the product are gone
		moment{stream + rows*e*(2*op.Hidden-op.Dim), down, down},
		// gate_up's backward: its output's gradient and its input's, and the
		// gathered input, are alive of all that the experts kept
		moment{stream - 2*rows*e*op.Hidden, min(s.NewGrads, 3*down), min(s.NewGrads, 2*down)},
		moment{3*stream - rows*e*(op.Dim+4*op.Hidden), s.NewGrads, min(s.NewGrads, 2*down)},
	)
	return c
}
