package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// kernels counts what a layer's forward and backward run: the operations that
// traffic names, and the products.
func kernels(op modelgraph.Op, s *Shape) (forward, backward float64) {
	casts := 0. // of inputs and weights under autocast, for each linear layer
	if s.Precision.Mixed() {
		casts = 2
	}
	switch op := op.(type) {
	case modelgraph.Norm:
		if op.Style == modelgraph.LayerNorm {
			return 1, 3
		}
		return 7, 15 // the residual's gradient in the latter
	case modelgraph.Attention:
		return attentionKernels(op, s, casts)
	case modelgraph.MLP:
		linears, f, b := 2., 2., 2.
		if op.Gated {
			linears, f, b = 3, 3, 4
		}
		extra := max(0, float64(activationExtra(op.Activation))*2-2)
		return linears*(1+casts) + f + extra, linears*(2+casts) + b + 2*extra
	case modelgraph.MoE:
		return 30, 45 // integrations/moe.py: router, sorting, two grouped products, the sum
	case modelgraph.Head:
		return 1 + casts + 5, 2 + casts + 5
	case modelgraph.StateSpace:
		return 20, 40
	}
	return 2, 4
}

// attentionKernels counts those of an attention block, with so many casts for
// each linear layer.
func attentionKernels(op modelgraph.Attention, s *Shape, casts float64) (forward, backward float64) {
	linears, rotation := 4., 0.
	if op.Fused {
		linears = 2
	}
	if op.Rope {
		rotation = 2 * 5
	}
	// The kernel is four going back: the sum over rows, itself, the cast,
	// the zeros; repeated heads sum theirs.
	forward, backward = linears*(1+casts)+rotation+2, linears*(2+casts)+2.6*rotation+4+3
	if op.QKNorm != "" {
		forward, backward = forward+2*7, backward+2*14
	}
	if op.Eager || s.Attention == costmodel.EagerAttention || s.e() == 4 {
		forward, backward = forward+4, backward+6
	}
	return forward, backward
}
