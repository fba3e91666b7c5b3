package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Passes is what a layer's forward and backward take of a device's time for
// one micro-batch: its products by flops, those of [Of], and the bytes that
// every other kernel reads and writes, one pass over each of its tensors.
// frozen: the weights get no gradient.
func Passes(op modelgraph.Op, s *Shape, flops float64, frozen bool) (forward, backward costmodel.Pass) {
	if s.Tokens == 0 {
		return forward, backward
	}
	if Products(op) {
		forward.Products = flops
	}
	forward.Traffic, backward.Traffic = traffic(op, s)
	forward.Kernels, backward.Kernels = kernels(op, s)
	if a, ok := op.(modelgraph.Attention); ok && a.KVRank == 0 {
		attentionPass(a, s, &forward, &backward)
	}
	// A product in forward is two in backward: for the input's gradient and
	// for the weight's.
	backward.Products += forward.Products
	if !frozen {
		backward.Products += forward.Products
		w, grads := float64(s.w()), float64(s.SecondGrads)
		backward.Traffic += 3 * grads // added to the gradient that is there
		if s.Precision.Mixed() {
			// Each gradient is made in 16 bits and cast (autocast's cast of
			// the weight, going back).
			backward.Traffic += (2 + w) * float64(s.Weights)
		}
	}
	if s.Precision.Mixed() && Products(op) {
		forward.Traffic += (4 + 2) * float64(s.Weights) // autocast casts each weight once a forward
	}
	if !s.Train {
		backward = costmodel.Pass{}
	}
	return forward, backward
}

// attentionPass takes the kernel's products out of the linear layers' and
// adds the kernel's own backward, which makes five products for forward's two
// (FlashAttention-2, arXiv 2307.08691, algorithm 2).
func attentionPass(op modelgraph.Attention, s *Shape, forward, backward *costmodel.Pass) {
	g := geometry(op, s)
	kernel := g.kernel
	forward.Products -= kernel
	if !op.Eager && s.e() == 2 {
		forward.Attention, backward.Attention = kernel, 2.5*kernel
		return
	}
	// The score matrix in memory; nothing leaves out the masked half.
	forward.Traffic += float64(g.scores * (6*s.e() + 4*4))
	backward.Traffic += float64(g.scores * (8*s.e() + 4*4))
	products := 2 * float64(g.scores) * float64(op.HeadDim+g.out/max(1, op.Heads))
	forward.Products += products
	backward.Products += products // with the weights' share of Passes: twice
}

// traffic is the bytes that kernels other than matrix products and attention
// move, as PyTorch runs them in eager mode: one kernel an operation.
func traffic(op modelgraph.Op, s *Shape) (forward, backward float64) {
	n := float64(s.Tokens)
	switch op := op.(type) {
	case modelgraph.Embedding:
		out := n * float64(s.r()*op.Dim)
		return 2 * out, out + float64(s.NewGrads+s.SecondGrads) // a dense gradient
	case modelgraph.Norm:
		f, b := normTraffic(op.Style, s)
		return n * float64(op.Dim) * f, n * float64(op.Dim) * (b + float64(3*s.r())) // and the residual's gradient
	case modelgraph.Attention:
		return attentionTraffic(op, s)
	case modelgraph.MLP:
		return mlpTraffic(op, s)
	case modelgraph.MoE:
		return moeTraffic(op, s)
	case modelgraph.Head:
		return headTraffic(op, s)
	case modelgraph.Linear:
		out := n * float64(s.r()*op.Out)
		return 2 * out, 3 * out
	case modelgraph.Conv:
		out := n * float64(s.r()*op.Out)
		return 2 * out, 3 * out
	case modelgraph.StateSpace: // the transition, the input and the states, made and read
		states := n * float64(4*op.Inner*op.State)
		return 6 * states, 12 * states
	}
	return 0, 0
}
