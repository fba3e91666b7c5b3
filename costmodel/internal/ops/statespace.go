package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// stateSpace is Mamba's mixer.
type stateSpace struct {
	plain
	modelgraph.StateSpace
}

// cost follows modeling_mamba.py MambaMixer.slow_forward, which runs without the optional mamba-ssm
// kernels. It materializes and keeps the discretized transition and input, [Inner, tokens, State]
// in fp32 each.
func (op stateSpace) cost(shape *Shape) Cost {
	switch {
	case MambaTwo(op.StateSpace) && shape.Kernels != value.PackageKernels && op.Contracted:
		return op.contracted(shape)
	case MambaTwo(op.StateSpace) && shape.Kernels != value.PackageKernels:
		return op.inTorch(shape)
	case lightning(&op):
		return op.lightning(shape)
	case op.Delta && shape.Kernels != value.PackageKernels:
		return op.delta(shape)
	case op.recurs():
		return op.recurrent(shape)
	case op.Heads > 0:
		return op.chunked(shape)
	}
	return op.sequential(shape)
}

// recurs reports RWKV-4's recurrence, with one number per channel.
func (op stateSpace) recurs() bool { return op.State == 1 && op.Chunk == 1 && op.Heads == op.Inner }

// recurrent adds modeling_rwkv.py's rwkv_linear_attention_cpu, which runs without the CUDA kernel
// that Transformers compiles. Each token keeps the key in fp32, its sums with time_first and with
// the decayed maximum, the new maximum, four exponentials, numerator, denominator, and both new
// states.
func (op stateSpace) recurrent(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	stream, wide, states := shape.streamBytes()*op.Dim*tokens, element*op.Inner*tokens, 4*op.Inner*tokens
	saved := 12 * states
	if element == 4 { // the key itself
		saved -= states
	}
	cost := Cost{Known: true, Output: stream}
	cost.FLOPs = 8*float64(tokens)*float64(op.Dim)*float64(op.Inner) + 20*float64(tokens)*float64(op.Inner)
	// The shifted input and three mixtures with it; values, the sigmoid, the result and their
	// product. The block's feed-forward also has a shift, two mixtures and a product.
	cost.Memory.Saved = saved + 8*stream + 4*wide + shape.casts(3, op.Dim, shape.Weights)
	if MixedPrecision(shape.Precision) {
		cost.Memory.Saved -= 5 * stream // casts are kept instead of mixtures
	}
	cost.Memory.KV = shape.Batch * (2*element*op.Dim + 12*op.Inner)
	cost.Memory.Forward = stream + max(7*stream, stream+5*wide) + cost.Memory.KV
	if shape.Train {
		cost.Memory.Forward = cost.Memory.Saved + wide
	}
	matrix := min(shape.NewGrads, shape.weightBytes()*op.Dim*op.Inner)
	cost.peak(
		// The first token's moment: gradients of both factors, of the result, and of keys and
		// values with their sums.
		backwardPoint{stream + 6*wide - wide, matrix, 0},
		backwardPoint{4*stream + wide - saved, shape.NewGrads, matrix},
	)
	return cost
}

// sequential adds modeling_mamba.py's mamba_selective_scan, which goes token by token. It keeps
// each token's transition and input factor in fp32, and every state in fp32 and in the compute
// type. The states' input lives until the function returns. Backward puts each token's gradients of
// these three into tensors of all tokens (SelectBackward0): two sums, and a tensor of zeros that is
// added in place (input_buffer.cpp).
func (op stateSpace) sequential(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	inner := op.Inner * tokens
	states := 4 * inner * op.State
	stream := shape.streamBytes() * op.Dim * tokens
	if op.FP32Residual {
		stream = 4 * op.Dim * tokens
	}
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	cost.FLOPs = 2*float64(tokens)*float64(3*op.Dim*op.Inner+op.Inner*(op.DtRank+2*op.State)+op.DtRank*op.Inner) + 9*float64(inner)*float64(op.State)
	// These are tensors of the mixer's width in execution order: both halves of the projection, the
	// convolution and its activation. The activation also exists in fp32, and as the next
	// projection's input. Then come the step before and after softplus, and the result in fp32.
	// Last are the gate's activation and the input of the last projection.
	wide := element*inner*9 + 2*4*inner
	cast := states * element / 4
	if element == 4 { // they are the same tensors
		cast = 0
	}
	cost.Memory.Saved = 3*states - states/max(1, shape.Length) + cast + wide + element*tokens*(op.DtRank+2*op.State) + shape.casts(1, op.Dim, shape.Weights)
	cost.Memory.KV = shape.Batch * op.Inner * (4*op.State + element*op.Kernel) // the recurrent state
	cost.Memory.Forward = stream + element*op.Dim*tokens + 3*states + element*inner*7 + 2*4*inner + cost.Memory.KV
	if shape.Train {
		cost.Memory.Forward = stream + element*op.Dim*tokens + cost.Memory.Saved + states
	}
	// The tensors of the result, its gate and the last projection are freed, and three gradients
	// exist.
	cost.peak(
		backwardPoint{stream + 3*states - 4*inner, min(shape.NewGrads, shape.weightBytes()*op.Inner*op.Dim), 0},
		backwardPoint{stream + 2*element*inner + element*op.Dim*tokens - cost.Memory.Saved, shape.NewGrads, shape.NewGrads},
	)
	return cost
}

// freeze keeps the scan's backward: gradients of its tensors reach the adapters of earlier
// projections, although no weight is trained.
func (op stateSpace) freeze(cost *Cost, shape *Shape) {
	inputs, _ := shape.adapters()
	forward := cost.Memory.Forward + shape.unfusedSaved(inputs, nil, false)
	frozenOther(cost, shape)
	cost.Memory.Forward = max(forward, cost.Memory.Saved+shape.work()) // an adapter's work is before the scan or after it
	scan := *shape
	scan.NewGrads = 0
	cost.peak(backwardPoint{op.cost(&scan).Memory.Backward, 0, 0})
}

// lightning reports MiniMax's linear attention.
func lightning(op *stateSpace) bool {
	return op.Heads > 0 && op.Chunk > 1 && op.Kernel == 0 && !op.Delta
}

// lightning adds modeling_minimax.py's MiniMaxLightningAttention in the compute type. For several
// sequences, bmm reads copies of the slices of q, k and v.
func (op stateSpace) lightning(shape *Shape) Cost {
	element, tokens, length := shape.elementBytes(), shape.Tokens, max(1, shape.Length)
	chunks := (length + op.Chunk - 1) / op.Chunk
	wide := element * tokens * op.Inner
	later := wide - wide*min(length, op.Chunk)/length // in all chunks except one
	scores := element * tokens * op.Heads * min(length, op.Chunk)
	states := element * shape.Batch * (chunks - 1) * op.Inner * op.State
	stream := shape.streamBytes() * op.Dim * tokens
	cost := op.chunked(shape)
	// The projection, q, k and v; the norm's input in fp32 and its result twice; the gate's sigmoid
	// and its product. Then q and k of the later chunks with their decays, and v.
	cost.Memory.Saved = 3*wide + 3*wide + 4*tokens*op.Inner + 4*wide + 2*later + scores + states + 4*tokens + shape.casts(2, op.Dim, shape.Weights)
	if shape.Batch > 1 {
		cost.Memory.Saved += later
	}
	cost.Memory.KV = element * shape.Batch * op.Inner * op.State
	cost.Memory.Forward = 2*stream + 4*wide + 8*tokens*op.Inner + cost.Memory.KV
	if shape.Train {
		cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+cost.Memory.Saved+wide)
	}
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	cost.peak(
		// The norm's moment, after the tensors of the gate and the last projection are freed.
		backwardPoint{stream + element*op.Dim*tokens + 16*tokens*op.Inner - 3*wide, min(shape.NewGrads, 2*shape.weightBytes()*op.Inner*op.Dim), 0},
		// The activation's moment, when only the projection is left.
		backwardPoint{stream + element*op.Dim*tokens + 9*wide - cost.Memory.Saved, min(shape.NewGrads, 2*shape.weightBytes()*op.Inner*op.Dim), 0},
		backwardPoint{3*stream + 3*wide - cost.Memory.Saved, shape.NewGrads, shape.NewGrads},
	)
	return cost
}

// chunked follows the algorithm in chunks (Dao and Gu 2024, arXiv 2405.21060, §6), not a family's
// code. Within a chunk it has the scores of all pairs of tokens, an fp32 matrix per head, and their
// decay. Between chunks it has one state per head. Both are kept, in addition to the outputs of the
// projections and the convolution.
func (op stateSpace) chunked(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	keys := op.Groups * op.State
	inputs := 2*op.Inner + 2*keys + op.Heads
	scores := 4 * op.Heads * op.Chunk * tokens
	states := 4 * op.Inner * op.State * ((tokens + op.Chunk - 1) / max(1, op.Chunk))
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	cost.FLOPs = 2 * float64(tokens) * (float64(op.Dim)*float64(inputs+op.Inner) + float64(op.Chunk)*float64(keys+op.Inner) + 2*float64(op.Inner)*float64(op.State))
	cost.Memory.Saved = element*tokens*(2*inputs+3*op.Inner) + 2*scores + 2*states + shape.casts(1, op.Dim, shape.Weights)
	cost.Memory.KV = shape.Batch * (4*op.Inner*op.State + element*(op.Inner+2*keys)*op.Kernel) // the recurrent state
	cost.Memory.Forward = 2*shape.streamBytes()*op.Dim*tokens + 3*scores + 2*states + element*inputs*tokens + cost.Memory.KV
	cost.peak(backwardPoint{shape.streamBytes()*op.Dim*tokens + 2*scores + 2*states + 2*element*inputs*tokens, shape.NewGrads, shape.NewGrads})
	return cost
}

// MambaTwo reports Mamba-2, which has a package of kernels and a fallback in Python.
func MambaTwo(op modelgraph.StateSpace) bool {
	return op.Heads > 0 && op.Chunk > 1 && op.Kernel > 0 && !op.Delta
}

// inTorch adds modeling_mamba2.py's mamba2_chunk_scan. It materializes its products of B and C for
// all pairs of a chunk's tokens before the sum over the state: one number per pair, head and state.
// It does so for the scores and the inputs, too. All tensors are fp32 and padded to whole chunks.
// Mamba2Mixer.torch_forward and its gated norm surround it.
func (op stateSpace) inTorch(shape *Shape) Cost {
	element, tokens, length := shape.elementBytes(), shape.Tokens, max(1, shape.Length)
	chunks := (length + op.Chunk - 1) / op.Chunk
	padded := tokens / length * chunks * op.Chunk
	keys := op.Groups * op.State
	wide := 4 * padded * op.Heads * op.State // B or C, one per head
	inner, scores := 4*padded*op.Inner, 4*padded*op.Chunk*op.Heads
	pairs := scores * max(op.State, op.Inner/max(1, op.Heads))
	states := 4 * tokens / length * (chunks + 1) * op.Inner * op.State
	inputs := element * tokens * (2*op.Inner + 2*keys + op.Heads)
	turned := element * tokens * (op.Inner + 2*keys) // the convolution's input and output
	cost := op.chunked(shape)
	cost.Memory.Saved = 3*wide + 3*scores + 4*inner + 2*states + 20*tokens*op.Inner + inputs + turned + element*tokens*op.Inner + shape.casts(1, op.Dim, shape.Weights)
	stream := shape.streamBytes() * op.Dim * tokens
	// The exponentials and the sums of pairs exist, with B, C and both forms of the input.
	cost.Memory.Forward = 2*stream + element*op.Dim*tokens + pairs + 2*scores + 2*wide + 2*inner + inputs + turned + cost.Memory.KV
	if shape.Train {
		cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+cost.Memory.Saved+4*padded*op.Inner*op.State) // B, C and states of each token
	}
	// Gradients of both factors of the pairs, of the scores and of their decay. The tensors of the
	// scan's end, the gated norm and the last projection are freed.
	gone := wide + 2*scores + 3*inner + 2*states + 16*tokens*op.Inner + element*tokens*op.Inner
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	cost.peak(backwardPoint{stream + 2*pairs + 2*scores + 3*wide + 2*inner - gone, min(shape.NewGrads, shape.weightBytes()*op.Inner*op.Dim), 0})
	return cost
}

// selected counts in_proj, x_proj and out_proj; dt_proj has a bias.
func (op stateSpace) selected(selective *Selective, shape *Shape, _ int) int64 {
	if op.Heads > 0 {
		return selective.product(shape, shape.Tokens, 2*op.Inner+2*op.Groups*op.State+op.Heads) + selective.product(shape, shape.Tokens, op.Dim)
	}
	return selective.product(shape, shape.Tokens, 2*op.Inner) + selective.product(shape, shape.Tokens, op.DtRank+2*op.State) + selective.product(shape, shape.Tokens, op.Dim)
}

// traffic counts the transition, the input and the states, written and read.
func (op stateSpace) traffic(shape *Shape) (forward, backward moved) {
	states := float64(shape.Tokens) * float64(4*op.Inner*op.State)
	if op.Heads > 0 {
		states = float64(shape.Tokens) * 4 * float64(op.Heads*op.Chunk+op.Inner*op.State/max(1, op.Chunk))
	}
	return moved{flat: 6 * states}, moved{flat: 12 * states}
}

func (stateSpace) kernels(*Shape, float64) (forward, backward float64) { return 20, 40 }

func (op stateSpace) bound(*Shape) bound {
	if op.Heads > 0 {
		return bound{width: float64(op.Dim) + 4*float64(op.Heads*op.Chunk) + float64(op.Inner*op.State) + float64(2*op.Groups*op.State+op.Inner)*(8+float64(op.Kernel))}
	}
	return bound{width: 2*float64(op.Dim) + float64(op.DtRank) + 2*float64(op.State) + float64(op.Inner)*(8+float64(op.State)+float64(op.Kernel))}
}
