package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// attend moves the kernel's products out of the linear layers' and adds the kernel's own backward.
// That makes five products for forward's two (FlashAttention-2, arXiv 2307.08691, algorithm 2).
func (op attention) attend(shape *Shape, forward, backward costmodel.Pass) (costmodel.Pass, costmodel.Pass) {
	dims := op.geometry(shape)
	kernel := dims.kernel
	forward.Products -= kernel
	if dims.by != scoresInMemory && shape.elementBytes() == 2 {
		forward.Attention, backward.Attention = kernel, 2.5*kernel
		return forward, backward
	}
	// The score matrix is in memory, including the masked half.
	forward.Traffic += float64(dims.scores * (6*shape.elementBytes() + 4*4))
	backward.Traffic += float64(dims.scores * (8*shape.elementBytes() + 4*4))
	products := 2 * float64(dims.scores) * float64(op.HeadDim+dims.out/max(1, op.Heads))
	forward.Products += products
	backward.Products += products // twice with the weights' share of Passes
	return forward, backward
}

// traffic counts the bytes of these operations:
//
//   - the rotation: two products, rotate_half's negation and cat, a sum (modeling_llama.py apply_rotary_pos_emb)
//   - norms of q and k, and the residual's sum
//   - sums of gradients: of the inputs of q, k and v, and of repeated heads.
func (op attention) traffic(shape *Shape) (forward, backward moved) {
	dims := op.geometry(shape)
	tokens, element, residual := float64(shape.Tokens), float64(shape.elementBytes()), float64(shape.streamBytes())
	heads := tokens * float64(dims.q+dims.k)
	stream := tokens * float64(op.Dim)
	forward.flat = 3 * residual * stream
	if !op.Fused {
		backward.flat += 2 * 3 * residual * stream
	}
	if op.Rope {
		forward.strided += (2 + 2 + 2 + 2 + 3 - 1) * element * heads
		// Slices return gradients as zeros, a copy and a sum each. Then q and k are made contiguous
		// for their projections.
		backward.flat += (1 + 3) * element * heads // the zeros and one sum
		backward.strided += (2 + 2 + 1 + 3 + 3 + 2) * element * heads
	}
	if op.Fused && op.Rope {
		// Slices of q, k and v return gradients as zeros, a copy and a sum each (modeling_phi3.py
		// Phi3Attention).
		all := tokens * float64(dims.q+2*dims.k)
		backward = backward.add((3+6)*element*all, 2*element*all)
	}
	if op.QKNorm != "" {
		traffic, b := normTraffic(op.QKNorm, shape)
		forward, backward = forward.add(traffic.flat*heads, traffic.strided*heads), backward.add(b.flat*heads, b.strided*heads)
	}
	backward.flat += (4 + 4 + element) * tokens * float64(dims.q) // flash's fp32 gradient of q: zeroed, accumulated, cast
	if op.KVHeads < op.Heads {
		backward.strided += 2 * element * (tokens*float64(dims.q) + float64(dims.kvTokens*dims.k))
	}
	if MixedPrecision(shape.Precision) { // a cast of the input for each projection, and back
		forward, backward = forward.add(3*6*stream, 0), backward.add(0, 3*6*stream)
	}
	if op.Dropout {
		forward, backward = forward.add(2*residual*stream, 0), backward.add(2*residual*stream, 0)
	}
	return forward, backward
}

// kernels counts the kernels of an attention block, with casts for each linear layer.
func (op attention) kernels(shape *Shape, casts float64) (forward, backward float64) {
	linears, rotation := 4., 0.
	if op.Fused {
		linears = 2
	}
	if op.Rope {
		rotation = 2 * 5
	}
	// The kernel's backward is four kernels: the sum over rows, the kernel itself, the cast and the
	// zeros. Repeated heads add sums.
	forward, backward = linears*(1+casts)+rotation+2, linears*(2+casts)+2.6*rotation+4+3
	if op.QKNorm != "" {
		forward, backward = forward+2*7, backward+2*14
	}
	if op.Eager || shape.Attention == value.EagerAttention || shape.elementBytes() == 4 {
		forward, backward = forward+4, backward+6
	}
	return forward, backward
}
