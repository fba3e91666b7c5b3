package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Modules is whose modules run the model.
type Modules string

// Programs with modules of their own; the others run Transformers'.
const (
	Torchtune  Modules = "torchtune"
	Torchtitan Modules = "torchtitan"
)

// chunkRows is the positions of one of the loss's chunks: each sequence is cut
// (torchtune 0.6, modules/transformer.py, chunked_output; torchtitan 0.3,
// components/loss.py, ChunkedLossWrapper).
func (shape *Shape) chunkRows() int64 {
	length := shape.Logits / max(1, shape.Batch)
	return (length + lossChunks - 1) / lossChunks * max(1, shape.Batch)
}

// chunkCopies are the chunks of a tensor of so many bytes: of several sequences
// they are not contiguous, and are copied.
func (shape *Shape) chunkCopies(bytes int64) int64 {
	if shape.Batch < 2 {
		return 0
	}
	return bytes
}

// tuneLoss follows torchtune 0.6.1: modules/transformer.py (chunked_output)
// makes the logits of all chunks, modules/loss/ce_chunked_output_loss.py their
// log-softmax, a chunk's fp32 copy at a time; the recipes drop the logits before
// backward.
func (cost *Cost) tuneLoss(op head, shape *Shape) {
	element, in := shape.elementBytes(), op.Dim*shape.Logits
	all, chunk := shape.Logits*op.Vocab, shape.chunkRows()*op.Vocab
	cost.Output = 0
	cost.Memory.Saved = 4*all + 8*shape.Logits + shape.chunkCopies(8*shape.Logits)
	if !shape.Frozen { // the chunks or what they are views of, for the weight's gradient
		cost.Memory.Saved += element * in
	}
	cost.Memory.Forward = element*all + element*in + shape.chunkCopies(element*in)
	cost.Memory.LossForward = cost.Memory.Saved + element*all
	if element < 4 {
		cost.Memory.LossForward += 4 * chunk // logits.float()
	}
	cost.tuneBackward(op, shape)
}

// tuneBackward: autograd takes the losses of all chunks first, as they were made
// last, so that the gradients of all logits are there; then the projection's
// chunks from the last on, whose gradients of the weight are added up in new
// tensors (torch/csrc/autograd/input_buffer.cpp, accumulate).
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

// titanLoss follows torchtitan 0.3.0, components/loss.py (ChunkedLossWrapper):
// each chunk's logits, loss and backward come before the model's own backward.
// The head's gradient is summed in fp32, the type of the reduction
// (torch 2.13, _fsdp_param.py, to_accumulated_grad_if_needed); the last chunk
// reduces it. The body's gradient remains.
func (cost *Cost) titanLoss(op head, shape *Shape) {
	element, in, chunk := shape.elementBytes(), op.Dim*shape.Logits, shape.chunkRows()*op.Vocab
	weight := shape.weightBytes() * op.Dim * op.Vocab
	cost.Output = 0
	cost.Memory.Saved = element * in
	// The hidden states, their chunks, and the buffer of their gradients.
	cost.Memory.LossHolds = element*in + shape.chunkCopies(element*in+8*shape.Logits) + 4*in + element*chunk
	loss := 12 * chunk // log-softmax, the likelihood's gradient and its own
	if element < 4 {
		loss = max(loss, 8*chunk)
	}
	cost.Memory.Forward = element * in
	cost.Memory.LossForward = cost.Memory.LossHolds + 4*op.Dim*op.Vocab + max(loss, weight+element*(chunk+in/lossChunks))
	cost.Memory.LossHolds += element * in / lossChunks
}

// chunked reports a loss that the program makes of chunks.
func (shape *Shape) chunked(modules Modules) bool {
	return shape.Modules == modules && shape.Loss == value.LossChunked
}

// reducedInForward reports that the head's gradient is reduced before the model's backward.
func (shape *Shape) reducedInForward(op modelgraph.Op) bool {
	_, last := op.(modelgraph.Head)
	return last && shape.Train && shape.chunked(Torchtitan)
}

// fused is torch.nn.RMSNorm in one kernel (torch 2.11, aten _fused_rms_norm),
// which keeps its input and 1/σ: that of torchtitan.
func (op norm) fused(shape *Shape) Cost {
	hN := shape.streamBytes() * op.Dim * shape.Tokens
	cost := Cost{Known: true, FLOPs: 5 * float64(op.Dim*shape.Tokens), Output: hN}
	cost.Memory.Saved = 4 * shape.Tokens
	if !shape.InputSaved {
		cost.Memory.Saved += hN
	}
	if !shape.HeadAlone {
		cost.Memory.Saved += hN
	}
	cost.Memory.Forward = cost.Memory.Saved + 2*hN
	cost.peak(backwardPoint{3 * hN, shape.NewGrads, 0})
	return cost
}

// native is an attention kernel's share that a program's own modules change:
// what is kept in addition.
func (op attention) native(dims *geo, shape *Shape) int64 {
	switch shape.Modules {
	case Torchtune:
		// Keys and values are expanded to all heads (modules/attention.py).
		return shape.elementBytes() * dims.repeated
	case Torchtitan:
		// FlexAttention has no seeds; the complex rotation of each position is
		// gathered in every layer (models/common/rope.py, _reshape_for_broadcast).
		saved := -seeds(shape) * op.kernelCalls(shape)
		if op.Rope {
			saved += 4 * op.HeadDim * shape.Tokens
		}
		return saved
	}
	return 0
}

// nativeBackward is the same of the kernel's backward: gradients of all heads'
// keys and values, or FlexAttention's, which needs no accumulator.
func (op attention) nativeBackward(dims *geo, shape *Shape) int64 {
	wide := int64(0)
	if op.KVHeads < op.Heads {
		wide = 2 * shape.elementBytes() * shape.Tokens * dims.q // that of grouped queries
	}
	switch shape.Modules {
	case Torchtune:
		return shape.elementBytes()*dims.repeated - wide
	case Torchtitan:
		return -wide - 4*shape.Tokens*dims.q
	}
	return 0
}

// selectedByTitan is what torchtitan 0.3's SelectiveAC keeps of attention
// (distributed/activation_checkpoint.py): the first of two products, the fused
// projection, and all that FlexAttention's compiled forward returns: the output,
// log-sum-exp, and the queries, keys and values that its backward reads.
func (op attention) selectedByTitan(selective *Selective, dims *geo, shape *Shape) int64 {
	total := selective.product(shape, shape.Tokens, dims.q+dims.k+dims.v)
	total += selective.product(shape, shape.Tokens, op.Dim)
	return total + shape.elementBytes()*shape.Tokens*(dims.q+dims.k+dims.v+dims.out) + 4*op.Heads*shape.Tokens
}
