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
	f, b := traffic(op, s)
	forward.Traffic, forward.Strided, backward.Traffic, backward.Strided = f.flat, f.strided, b.flat, b.strided
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
			backward.Strided += (2 + w) * float64(s.Weights)
		}
	}
	if s.Precision.Mixed() && Products(op) {
		forward.Traffic += (4 + 2) * float64(s.Weights) // autocast casts each weight once a forward
	}
	if unaligned(op, s) {
		forward.Products, forward.Unaligned = 0, forward.Products
		backward.Products, backward.Unaligned = 0, backward.Products
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
	if g.by != scoresInMemory && s.e() == 2 {
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

// unaligned reports products over rows that are no multiple of 16 bytes, such
// as the logits of an odd vocabulary: cuBLAS has no Hopper kernel for them.
func unaligned(op modelgraph.Op, s *Shape) bool {
	if s.e() != 2 {
		return false
	}
	switch op := op.(type) {
	case modelgraph.Head:
		return (op.Vocab|op.Dim)%8 != 0
	case modelgraph.Linear:
		return (op.Out|op.In)%8 != 0
	}
	return false
}

// moved is bytes read and written: by kernels that go through tensors in order
// (vectorized_elementwise_kernel, memcpy, the loss), and by those that
// broadcast, reduce, concatenate, cast up or read slices (elementwise_kernel,
// unrolled_elementwise_kernel, reduce_kernel, CatArrayBatchedCopy).
type moved struct{ flat, strided float64 }

func (m moved) add(flat, strided float64) moved { return moved{m.flat + flat, m.strided + strided} }

func (m moved) times(n float64) moved { return moved{n * m.flat, n * m.strided} }

// traffic is the bytes that kernels other than matrix products and attention
// move, as PyTorch runs them in eager mode: one kernel an operation.
func traffic(op modelgraph.Op, s *Shape) (forward, backward moved) {
	n := float64(s.Tokens)
	switch op := op.(type) {
	case modelgraph.Embedding:
		out := n * float64(s.r()*op.Dim)
		return moved{flat: 2 * out}, moved{flat: out + float64(s.NewGrads+s.SecondGrads)} // a dense gradient
	case modelgraph.Norm:
		f, b := normTraffic(op.Style, s)
		stream := n * float64(op.Dim)
		return f.times(stream), b.times(stream).add(stream*float64(3*s.r()), 0) // and the residual's gradient
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
		return moved{flat: 2 * out}, moved{flat: 3 * out}
	case modelgraph.Conv:
		out := n * float64(s.r()*op.Out)
		return moved{flat: 2 * out}, moved{flat: 3 * out}
	case modelgraph.StateSpace: // the transition, the input and the states, made and read
		states := n * float64(4*op.Inner*op.State)
		return moved{flat: 6 * states}, moved{flat: 12 * states}
	}
	return moved{}, moved{}
}
