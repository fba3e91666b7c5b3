package ops

import (
	"math/bits"
)

// lossChunks is torchtitan's number of chunks (torchtitan/components/loss.py,
// ChunkedLossWrapper.Config.num_chunks).
const lossChunks = 8

// chunkedLoss follows torchtitan/components/loss.py, ChunkedLossWrapper: the
// tokens in eight parts, and for each the head, the loss and their backward,
// before the model's own backward. The input's gradient and the head's remain,
// which is made in forward; no logits.
func (cost *Cost) chunkedLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	nV := (shape.Logits + lossChunks - 1) / lossChunks * op.Vocab
	grads := shape.NewGrads + shape.SecondGrads
	cost.Output = 0
	cost.Memory.Saved = shape.streamBytes()*in + grads + 8*shape.Logits
	// A chunk has logits, their fp32 copy's log-softmax and two gradients;
	// then, in addition to the logits and their gradient, the weight's of this
	// chunk, which is added to that of the chunks before.
	loss := grads + (element+12)*nV
	weight := 2*grads + 2*element*nV
	casts := int64(0)
	if MixedPrecision(shape.Precision) {
		casts = 2*op.Dim*op.Vocab + element*in/lossChunks
		weight += 2*op.Dim*op.Vocab - element*nV // in 16 bits first, in addition to its fp32 copy
	}
	if op.SoftCap {
		loss += element * nV
	}
	// Throughout, the input, which the detached chunks are views of, and an
	// fp32 buffer of its gradient.
	cost.Memory.Forward = (shape.streamBytes()+4)*in + 8*shape.Logits + max(loss, weight+shape.streamBytes()*in/lossChunks) + casts
	cost.Memory.Forward = max(cost.Memory.Forward, shape.streamBytes()*in+4*in+cost.Memory.Saved) // the buffer's cast
	cost.peak(backwardPoint{-grads, grads, grads})
}

// fusedLoss follows liger_kernel/ops/fused_linear_cross_entropy.py
// (liger-kernel 0.8.5), fused_linear_cross_entropy_forward: gradients of the
// input and of the weight are made in forward, a part of the tokens at a time
// such that its logits take no more than the input; they are what is kept.
func (cost *Cost) fusedLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	parts := (op.Vocab + op.Dim - 1) / max(1, op.Dim)
	chunk := min(shape.Logits, powerOfTwo((shape.Logits+parts-1)/max(1, parts)))
	grads := shape.NewGrads + shape.SecondGrads
	cost.Output = 0
	cost.Memory.Saved = shape.streamBytes()*in + grads
	cost.Memory.Forward = shape.streamBytes()*in + cost.Memory.Saved + (element*op.Vocab+8+4)*chunk + 12*shape.Logits
	if MixedPrecision(shape.Precision) {
		// weight.t() is cast for every product, weight once (autocast caches
		// leaves alone), and a chunk of the input.
		cost.Memory.Forward += 2*2*op.Dim*op.Vocab + 2*op.Dim*chunk
	}
	cost.peak(backwardPoint{-grads, grads, grads})
}

// Sides of TRL's tiles (trl 1.16, trl/kernels/chunked_logprob.py,
// TOKEN_CHUNK_SIZE, and its caller's chunk_size).
const (
	tileTokens = 4096
	tileVocab  = 32768
)

// tiledLoss follows trl/kernels/chunked_logprob.py (trl 1.16),
// ChunkedLogProbFunction: logits exist a tile at a time, and again in backward,
// which sums both gradients in fp32. Every position but a sequence's last is a
// label; the positions are copied (trainer/utils.py, add_fused_lm_head).
func (cost *Cost) tiledLoss(op head, shape *Shape) {
	labels := max(1, shape.Logits-shape.Batch)
	element, stream, in := shape.elementBytes(), shape.streamBytes(), op.Dim*labels
	grads := shape.NewGrads + shape.SecondGrads
	tile := element * min(labels, tileTokens) * tileVocab
	tokens, weights, before := int64(0), int64(0), int64(0) // casts of a tile's tokens and weights, and of the tile before
	if stream != element {
		tokens = element * op.Dim * min(labels, tileTokens)
	}
	if MixedPrecision(shape.Precision) || shape.HeadCasts {
		weights = element * op.Dim * min(op.Vocab, tileVocab)
		before = element * op.Dim * min(max(0, op.Vocab-tileVocab), tileVocab)
	}
	again := min(tokens, element*op.Dim*max(0, labels-tileTokens)) // the next tokens' cast, made before these go
	cost.Output = 0
	cost.Memory.Saved = stream*in + (8+4+4)*labels
	cost.Memory.Forward = cost.Memory.Saved + stream*op.Dim*shape.Tokens + 7*4*labels + tile + tokens + max(weights, again)
	sums := 4*in + tile + tokens
	last := sums // what it returns is cast while all of this is there
	if stream < 4 {
		last += stream * in
	}
	own := grads
	if shape.weightBytes() < 4 && grads > 0 {
		sums, last, own = sums+4*op.Dim*op.Vocab, last+4*op.Dim*op.Vocab, 0
	}
	cost.peak(backwardPoint{sums + max(weights+before, weights+again), own, own}, backwardPoint{last + before, grads, grads})
}

// powerOfTwo is the least power of two from count up (triton.next_power_of_2).
func powerOfTwo(count int64) int64 {
	if count <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(count-1))
}
