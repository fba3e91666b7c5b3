package ops

import (
	"math/bits"

	"github.com/devmap-dev/devmap/modelgraph"
)

// lossChunks is torchtitan's number of chunks (torchtitan/components/loss.py,
// ChunkedLossWrapper.Config.num_chunks).
const lossChunks = 8

// chunkedLoss follows torchtitan/components/loss.py, ChunkedLossWrapper: the
// tokens in eight parts, and for each the head, the loss and their backward,
// before the model's own backward. What stays is the input's gradient and the
// head's, which is made in forward; no logits.
func (c *Cost) chunkedLoss(op modelgraph.Head, s *Shape) {
	e, in := s.e(), op.Dim*s.Logits
	nV := (s.Logits + lossChunks - 1) / lossChunks * op.Vocab
	grads := s.NewGrads + s.SecondGrads
	c.Output = 0
	c.Step.Saved = s.r()*in + grads + 8*s.Logits
	// Of a chunk the logits, their fp32 copy's log-softmax and two gradients;
	// then, beside the logits and their gradient, the weight's of this chunk,
	// which is added to that of the chunks before.
	loss := grads + (e+12)*nV
	weight := 2*grads + 2*e*nV
	casts := int64(0)
	if s.Precision.Mixed() {
		casts = 2*op.Dim*op.Vocab + e*in/lossChunks
		weight += 2*op.Dim*op.Vocab - e*nV // in 16 bits first, beside its fp32 copy
	}
	if op.SoftCap {
		loss += e * nV
	}
	// Throughout, the input, which the detached chunks are views of, and an
	// fp32 buffer of its gradient.
	c.Step.Forward = (s.r()+4)*in + 8*s.Logits + max(loss, weight+s.r()*in/lossChunks) + casts
	c.Step.Forward = max(c.Step.Forward, s.r()*in+4*in+c.Step.Saved) // the buffer's cast
	c.peak(moment{-grads, grads, grads})
}

// fusedLoss follows liger_kernel/ops/fused_linear_cross_entropy.py
// (liger-kernel 0.8.5), fused_linear_cross_entropy_forward: gradients of the
// input and of the weight are made in forward, a part of the tokens at a time
// such that its logits take no more than the input; they are what is kept.
func (c *Cost) fusedLoss(op modelgraph.Head, s *Shape) {
	e, in := s.e(), op.Dim*s.Logits
	parts := (op.Vocab + op.Dim - 1) / max(1, op.Dim)
	chunk := min(s.Logits, powerOfTwo((s.Logits+parts-1)/max(1, parts)))
	grads := s.NewGrads + s.SecondGrads
	c.Output = 0
	c.Step.Saved = s.r()*in + grads
	c.Step.Forward = s.r()*in + c.Step.Saved + (e*op.Vocab+8+4)*chunk + 12*s.Logits
	if s.Precision.Mixed() {
		// weight.t() is cast for every product, weight once (autocast caches
		// leaves alone), and a chunk of the input.
		c.Step.Forward += 2*2*op.Dim*op.Vocab + 2*op.Dim*chunk
	}
	c.peak(moment{-grads, grads, grads})
}

// powerOfTwo is the least power of two from n up (triton.next_power_of_2).
func powerOfTwo(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
