package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// embedding is a table of rows.
type embedding struct {
	plain
	modelgraph.Embedding
}

func (embedding) products() bool { return false }

// cost follows torch.nn.Embedding with a dense gradient. From 3072 tokens on,
// embedding_dense_backward (Embedding.cu) sorts the tokens and adds partial sums in fp32: about one
// per ten tokens, and one per distinct token.
func (op embedding) cost(shape *Shape) Cost {
	tokens := shape.Tokens
	out := shape.streamBytes() * op.Dim * tokens
	cost := Cost{Known: true, Output: out, FLOPs: float64(op.Dim * tokens)}
	cost.Memory.Saved = 8 * tokens // the indices
	if op.Dropout {
		cost.Memory.Saved += op.Dim * tokens
	}
	cost.Memory.Forward = out + 8*tokens
	if op.Scaled {
		cost.Memory.Forward += out
	}
	if shape.Shared { // the mask of tokens on other GPUs, and the ids on this one
		cost.Memory.Forward += shape.reduced(op.Dim) + (1+8)*tokens
	}
	if shape.Scatter {
		cost.Memory.Forward += scattered(op.Dim, shape)
	}
	if shape.Inputs && shape.Modules == "" {
		// inputs_embeds is a variable of LlamaModel.forward and similar functions. The first
		// block's input is the same tensor, and counts twice there.
		cost.Memory.UntilBodyEnd = out
	}
	if op.Persists && shape.Modules == "" {
		cost.Memory.UntilBodyEnd = out
		if op.Index == modelgraph.PositionIndex {
			cost.Memory.UntilBodyEnd = shape.streamBytes() * op.Dim * shape.Length
		}
	}
	if shape.Compiled {
		cost.compiledEmbedding(op, shape)
		return cost
	}
	var sums int64
	if tokens > 3072 {
		sums = 4*op.Dim*(tokens/10+min(tokens, op.Vocab)) + 3*8*tokens
	}
	grads := shape.NewGrads + shape.SecondGrads
	cost.peak(backwardPoint{out + sums, grads, grads})
	if !MixedPrecision(shape.Precision) && shape.Loss != value.LossTiled && shape.Loss != value.LossFused {
		// The sum of a tied table's two gradients is a new tensor (input_buffer.cpp, accumulate;
		// fixtures/measured/trainer_h200.jsonl). Autocast's casts and the gradients of a tiled or
		// fused loss are added in place, as nothing else refers to them.
		grads += shape.SecondGrads
		cost.peak(backwardPoint{0, grads, grads})
	}
	return cost
}

// compiledEmbedding adds the backward of a table in a graph of torch.compile. Its sums are fp32
// (torch 2.11, _decomp/decompositions.py, embedding_dense_backward). The caller gets the logits, so
// autograd makes a gradient of zeros for them. It stays to the end
// (_functorch/_aot_autograd/runtime_wrappers.py: materialized grads), in fp32 if Accelerate returns
// fp32 logits. The head's gradient of a tied table is made last, while the logits' gradient still
// exists.
func (cost *Cost) compiledEmbedding(op embedding, shape *Shape) {
	element, logits := shape.elementBytes(), op.Vocab*shape.Logits
	cost.zeroGradient(op, shape)
	var sums int64
	if shape.weightBytes() < 4 {
		sums = 4 * op.Dim * op.Vocab
	}
	if shape.SecondGrads > 0 {
		sums += element * logits
	}
	cost.peak(backwardPoint{sums, shape.NewGrads, shape.NewGrads})
}

// zeroGradient adds the logits' gradient of zeros, from the loss to the end of backward. If the
// model is compiled in parts, it is freed after backward of the last part.
func (cost *Cost) zeroGradient(op embedding, shape *Shape) {
	if shape.Inputs && !shape.InParts {
		each := shape.elementBytes()
		if MixedPrecision(shape.Precision) {
			each = 4
		}
		cost.Memory.Saved += each * op.Vocab * shape.Logits
	}
}

// freeze makes the output a leaf with a gradient (enable_input_require_grads).
func (op embedding) freeze(cost *Cost, shape *Shape) {
	cost.Memory.Saved = 0
	if shape.Compiled {
		cost.zeroGradient(op, shape)
	}
	cost.peak(backwardPoint{cost.Output, 0, 0})
}

func (op embedding) traffic(shape *Shape) (forward, backward moved) {
	out := float64(shape.Tokens) * float64(shape.streamBytes()*op.Dim)
	return moved{flat: 2 * out}, moved{flat: out + float64(shape.NewGrads+shape.SecondGrads)} // a dense gradient
}

func (op embedding) bound(*Shape) bound { return bound{width: float64(op.Dim)} }

// scattered returns the bytes of putting image features into the embeddings: the result, and per
// element an index of 8 bytes and a byte of the mask (IndexKernel.cu:
// launch_masked_scatter_kernel). Backward keeps the original mask, one byte per token.
func scattered(dim int64, shape *Shape) int64 {
	return (shape.streamBytes() + 8 + 1) * dim * shape.Tokens
}

// rotary makes cosines and sines of positions.
type rotary struct {
	plain
	modelgraph.Rotary
}

func (rotary) products() bool { return false }

// cost makes cos and sin [rows, head width] once per forward. They are counted here, once, unless
// layers get their own copies.
func (op rotary) cost(shape *Shape) Cost {
	if shape.Modules != "" { // each program has a table for all positions, a buffer
		return Cost{Known: true}
	}
	rows, element := shape.Length, shape.streamBytes()
	if op.Rows || op.Packed || shape.Positions {
		rows = shape.Tokens
	}
	if op.Packed {
		element = 4
	}
	size := rows * op.HeadDim
	cost := Cost{Known: true, Output: 2 * element * size, FLOPs: 4 * float64(size)}
	cost.Memory.Forward = (3*4 + 2*element) * size
	if op.Packed || !shape.RotaryCopies {
		cost.Memory.Saved, cost.Memory.UntilBodyEnd = cost.Output, cost.Output
	}
	return cost
}

func (op rotary) bound(*Shape) bound { return bound{width: float64(op.HeadDim)} }
