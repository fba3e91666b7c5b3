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

// compiledLoss is TorchInductor's: the logits are kept, with a maximum and a logarithm of
// each position, and their fp32 copy and log-softmax are made in the kernels that read
// them (torch 2.11, _functorch/partitioners.py, min_cut_rematerialization_partition);
// backward makes the logits' gradient. The mask is kept once: when a model is traced,
// Transformers makes one (masking_utils.py, _ignore_causal_mask_sdpa: is_tracing).
func (cost *Cost) compiledLoss(op head, shape *Shape, nV, in int64) {
	element := shape.elementBytes()
	grads := shape.NewGrads + shape.SecondGrads
	cost.Memory.Saved = element*nV + (4+4+8)*shape.Logits + shape.casts(1, op.Dim, op.Dim*op.Vocab) + element*shape.Batch*shape.Length*shape.Length
	cost.Memory.Forward = cost.Memory.Saved
	loss := element * nV
	if MixedPrecision(shape.Precision) {
		// The caller has fp32 logits, so that the gradient takes the place of these; that
		// of the weight is cast later.
		loss, grads = 0, grads/2
	}
	cost.lossParts(loss, backwardPoint{shape.streamBytes() * in, grads, grads})
}

// Sides of TRL's tiles (trl 1.16, trl/kernels/chunked_logprob.py,
// TOKEN_CHUNK_SIZE, and its caller's chunk_size).
const (
	tileTokens = 4096
	tileVocab  = 32768
)

// tiledLoss follows trl/kernels/chunked_logprob.py (trl 1.16),
// ChunkedLogProbFunction: logits exist a tile at a time, and again in backward,
// which sums both gradients in fp32. Every position counts as a label.
func (cost *Cost) tiledLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	grads := shape.NewGrads + shape.SecondGrads
	tile := element * min(shape.Logits, tileTokens) * tileVocab
	casts := int64(0)
	if MixedPrecision(shape.Precision) { // of a tile's weights, in backward those of the one before too, and of its tokens
		casts = element * op.Dim * (min(op.Vocab, tileVocab) + min(shape.Logits, tileTokens))
	}
	cost.Output = 0
	cost.Memory.Saved = shape.streamBytes()*in + (8+4)*shape.Logits
	cost.Memory.Forward = cost.Memory.Saved + shape.streamBytes()*in + 7*4*shape.Logits + tile + casts
	sums := 4*in + tile + 2*casts
	if shape.weightBytes() < 4 && grads > 0 {
		sums += 4*op.Dim*op.Vocab - grads // before its cast
	}
	cost.peak(backwardPoint{sums, grads, grads}, backwardPoint{(4+shape.streamBytes())*in + tile, grads, grads})
}

// powerOfTwo is the least power of two from count up (triton.next_power_of_2).
func powerOfTwo(count int64) int64 {
	if count <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(count-1))
}
