package ops

import (
	"math/bits"
)

// lossChunks is torchtitan's number of chunks (torchtitan/components/loss.py,
// ChunkedLossWrapper.Config.num_chunks).
const lossChunks = 8

// chunkedLoss follows torchtitan/components/loss.py, ChunkedLossWrapper. It divides the tokens into
// eight chunks. For each chunk, the head, the loss and their backward run before the model's own
// backward. The gradients of the input and the head remain, both made in forward, and no logits.
func (cost *Cost) chunkedLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	nV := (shape.Logits + lossChunks - 1) / lossChunks * op.Vocab
	grads := shape.NewGrads + shape.SecondGrads
	cost.Output = 0
	cost.Memory.Saved = shape.streamBytes()*in + grads + 8*shape.Logits
	// A chunk has logits, log-softmax of their fp32 copy, and two gradients. Then it has the
	// logits, their gradient, and this chunk's gradient of the weight, which is added to the
	// earlier chunks'.
	loss := grads + (element+12)*nV
	weight := 2*grads + 2*element*nV
	casts := int64(0)
	if MixedPrecision(shape.Precision) {
		casts = 2*op.Dim*op.Vocab + element*in/lossChunks
		weight += 2*op.Dim*op.Vocab - element*nV // first in 16 bits, in addition to its fp32 copy
	}
	if op.SoftCap {
		loss += element * nV
	}
	// The input exists throughout, as the detached chunks are views of it. So does an fp32 buffer
	// of its gradient.
	cost.Memory.Forward = (shape.streamBytes()+4)*in + 8*shape.Logits + max(loss, weight+shape.streamBytes()*in/lossChunks) + casts
	cost.Memory.Forward = max(cost.Memory.Forward, shape.streamBytes()*in+4*in+cost.Memory.Saved) // the buffer's cast
	cost.peak(backwardPoint{-grads, grads, grads})
}

// fusedLoss follows liger_kernel/ops/fused_linear_cross_entropy.py (liger-kernel 0.8.5),
// fused_linear_cross_entropy_forward. Forward makes and keeps the gradients of the input and of the
// weight. It takes a part of the tokens at a time, so that their logits are no larger than the
// input.
func (cost *Cost) fusedLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	parts := (op.Vocab + op.Dim - 1) / max(1, op.Dim)
	chunk := min(shape.Logits, powerOfTwo((shape.Logits+parts-1)/max(1, parts)))
	grads := shape.NewGrads + shape.SecondGrads
	cost.Output = 0
	cost.Memory.Saved = shape.streamBytes()*in + grads
	cost.Memory.Forward = shape.streamBytes()*in + cost.Memory.Saved + (element*op.Vocab+8+4)*chunk + 12*shape.Logits
	if MixedPrecision(shape.Precision) {
		// Autocast casts weight.t() for every product, weight once (it caches only leaves), and a
		// chunk of the input.
		cost.Memory.Forward += 2*2*op.Dim*op.Vocab + 2*op.Dim*chunk
	}
	cost.peak(backwardPoint{-grads, grads, grads})
}

// compiledLoss is TorchInductor's. It keeps the logits, with a maximum and a logarithm of each
// position. The kernels that read the logits compute their fp32 copy and log-softmax (torch 2.11,
// _functorch/partitioners.py, min_cut_rematerialization_partition), and backward makes the logits'
// gradient. The mask is kept once: when a model is traced, Transformers makes one
// (masking_utils.py, _ignore_causal_mask_sdpa: is_tracing).
func (cost *Cost) compiledLoss(op head, shape *Shape, nV, in int64) {
	element := shape.elementBytes()
	grads := shape.NewGrads + shape.SecondGrads
	cost.Memory.Saved = element*nV + (4+4+8)*shape.Logits + shape.casts(1, op.Dim, op.Dim*op.Vocab) + element*shape.Batch*shape.Length*shape.Length
	cost.Memory.Forward = cost.Memory.Saved
	loss := element * nV
	if MixedPrecision(shape.Precision) {
		// The caller has fp32 logits, so their gradient replaces them. The weight's gradient is
		// cast later.
		loss, grads = 0, grads/2
	}
	cost.lossParts(loss, backwardPoint{shape.streamBytes() * in, grads, grads})
}

// These are the sides of TRL's tiles (trl 1.16, trl/kernels/chunked_logprob.py, TOKEN_CHUNK_SIZE,
// and its caller's chunk_size).
const (
	tileTokens = 4096
	tileVocab  = 32768
)

// tiledLoss follows trl/kernels/chunked_logprob.py (trl 1.16), ChunkedLogProbFunction. Logits exist
// one tile at a time. Backward computes them again, and sums both gradients in fp32. Every position
// except a sequence's last is a label; the positions are copied (trainer/utils.py,
// add_fused_lm_head).
func (cost *Cost) tiledLoss(op head, shape *Shape) {
	labels := max(1, shape.Logits-shape.Batch)
	element, stream, in := shape.elementBytes(), shape.streamBytes(), op.Dim*labels
	grads := shape.NewGrads + shape.SecondGrads
	tile := element * min(labels, tileTokens) * tileVocab
	tokens, weights, before := int64(0), int64(0), int64(0) // casts of a tile's tokens and weights, and of the previous tile
	if stream != element {
		tokens = element * op.Dim * min(labels, tileTokens)
	}
	if MixedPrecision(shape.Precision) || shape.HeadCasts {
		weights = element * op.Dim * min(op.Vocab, tileVocab)
		before = element * op.Dim * min(max(0, op.Vocab-tileVocab), tileVocab)
	}
	again := min(tokens, element*op.Dim*max(0, labels-tileTokens)) // the next tokens' cast, made before these are freed
	cost.Output = 0
	cost.Memory.Saved = stream*in + (8+4+4)*labels
	cost.Memory.Forward = cost.Memory.Saved + stream*op.Dim*shape.Tokens + 7*4*labels + tile + tokens + max(weights, again)
	sums := 4*in + tile + tokens
	last := sums // its result is cast while all of these exist
	if stream < 4 {
		last += stream * in
	}
	own := grads
	if shape.weightBytes() < 4 && grads > 0 {
		sums, last, own = sums+4*op.Dim*op.Vocab, last+4*op.Dim*op.Vocab, 0
	}
	cost.peak(backwardPoint{sums + max(weights+before, weights+again), own, own}, backwardPoint{last + before, grads, grads})
}

// powerOfTwo returns the least power of two that is at least count (triton.next_power_of_2).
func powerOfTwo(count int64) int64 {
	if count <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(count-1))
}

// chunkRows returns the positions of one of the loss's chunks: each sequence is cut (torchtune 0.6,
// modules/transformer.py, chunked_output; torchtitan 0.3, components/loss.py, ChunkedLossWrapper).
func (shape *Shape) chunkRows() int64 {
	length := shape.Logits / max(1, shape.Batch)
	return (length + lossChunks - 1) / lossChunks * max(1, shape.Batch)
}

// chunkCopies returns the bytes of copies of a tensor's chunks. Chunks of several sequences are not
// contiguous, so they are copied.
func (shape *Shape) chunkCopies(bytes int64) int64 {
	if shape.Batch < 2 {
		return 0
	}
	return bytes
}

// tuneLoss follows torchtune 0.6.1. modules/transformer.py (chunked_output) makes the logits of all
// chunks. modules/loss/ce_chunked_output_loss.py makes their log-softmax, with the fp32 copy of one
// chunk at a time. The recipes free the logits before backward.
func (cost *Cost) tuneLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	all, chunk := shape.Logits*op.Vocab, shape.chunkRows()*op.Vocab
	cost.Output = 0
	cost.Memory.Saved = 4*all + 8*shape.Logits + shape.chunkCopies(8*shape.Logits)
	if !shape.Frozen { // the chunks or their base tensor, for the weight's gradient
		cost.Memory.Saved += element * in
	}
	cost.Memory.Forward = element*all + element*in + shape.chunkCopies(element*in)
	cost.Memory.LossForward = cost.Memory.Saved + element*all
	if element < 4 {
		cost.Memory.LossForward += 4 * chunk // logits.float()
	}
	cost.tuneBackward(op, shape)
}

// tuneBackward first runs backward of all chunks' losses, as autograd starts with the last nodes.
// So the gradients of all logits exist at once. Then it runs backward of the projection's chunks,
// from the last on. New tensors add up their gradients of the weight
// (torch/csrc/autograd/input_buffer.cpp, accumulate).
func (cost *Cost) tuneBackward(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	all, chunk := shape.Logits*op.Vocab, shape.chunkRows()*op.Vocab
	grads := shape.NewGrads + shape.SecondGrads
	part := element * in / lossChunks
	cost.lossParts(8*chunk, backwardPoint{element*all - 4*all + part, grads, grads})
	if grads > 0 {
		sum := backwardPoint{element*(all-2*chunk) - 4*all + 2*part, 3 * grads, 3 * grads}
		cost.peak(sum)
		if at := sum.activations + sum.grads; at > cost.Memory.HeadBackward {
			cost.Memory.HeadBackward, cost.Memory.HeadGrads = at, sum.grads
		}
	}
	cost.Memory.LossFrees = (4 - element) * all
}

// titanLoss follows torchtitan 0.3.0, components/loss.py (ChunkedLossWrapper). Each chunk's logits,
// loss and backward come before the model's own backward. The head's gradient is summed in fp32,
// the type of the reduction (torch 2.13, _fsdp_param.py, to_accumulated_grad_if_needed), and the
// last chunk reduces it. The body's gradient remains.
func (cost *Cost) titanLoss(op head, shape *Shape) {
	element, in, chunk := shape.elementBytes(), op.Dim*shape.Logits, shape.chunkRows()*op.Vocab
	weight := shape.weightBytes() * op.Dim * op.Vocab
	cost.Output = 0
	cost.Memory.Saved = element * in
	// These are the hidden states, their chunks, and the buffer of their gradients.
	cost.Memory.LossAlive = element*in + shape.chunkCopies(element*in+8*shape.Logits) + 4*in + element*chunk
	loss := 12 * chunk // log-softmax, the likelihood's gradient and its own
	if element < 4 {
		loss = max(loss, 8*chunk)
	}
	if shape.Shared { // the likelihood's, the exponentials and their sum (_LossParallelCrossEntropy)
		loss = 16 * chunk
	}
	cost.Memory.Forward = element * in
	cost.Memory.LossForward = cost.Memory.LossAlive + 4*op.Dim*op.Vocab + max(loss, weight+element*(chunk+in/lossChunks))
	cost.Memory.LossAlive += element * in / lossChunks
}
