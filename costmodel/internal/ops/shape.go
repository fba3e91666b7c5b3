package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Shape is one micro-batch as a layer sees it.
type Shape struct {
	// Followed: what the allocator adds to tensors is counted elsewhere.
	Followed bool
	Tokens   int64 // N
	Length   int64 // tokens of one sequence
	Batch    int64 // sequences
	// Encoder is the number of tokens that cross-attention reads.
	Encoder int64
	// Cache is the number of tokens a sequence's KV cache ends with.
	Cache int64
	// Logits is the number of positions that the head projects.
	Logits int64

	// Real are the tokens without padding; 0: all. Documents are the sequences
	// that attention keeps apart; 0: one a row.
	Real, Documents int64
	// Masked: SDPA is given a mask of every row, because rows are padded or have
	// several documents. MaskGiven: the caller made it, in the type of compute.
	// Varlen: torch's kernel takes the bounds of the documents instead.
	Masked, MaskGiven, Varlen bool
	// Unpads: flash-attn is given copies of the tokens without padding.
	Unpads bool
	// Positions: every row has positions of its own.
	Positions bool

	// HeadAlone: the layer is the norm before the head, or the head after one.
	// The head's GPU keeps its input.
	HeadAlone bool
	// Inputs: the layer embeds a decoder's tokens; the model's forward keeps
	// its output in a variable.
	Inputs bool
	// Persists: another stack's output that a decoder reads, or the tokens' embeddings of such
	// a decoder. The model's forward keeps the output in a variable.
	Persists bool
	// StackOutput is another stack's output, which a model with a head returns, too.
	StackOutput int64
	// Images: sequences have images.
	Images bool
	// Scatter: image features take the places of tokens in the layer's output.
	Scatter bool
	// InputSaved: the layer that made the input keeps it.
	InputSaved bool
	// StreamInput: no norm comes before: linear layers keep the residual stream itself.
	StreamInput bool
	// SameResidual: the residual is the input itself, as where norms follow.
	SameResidual bool
	// InputShared: another LayerNorm keeps the same input (parallel parts with a norm each).
	InputShared bool
	// Parallel: a feed-forward reads the same norm's output, whose gradient it has made
	// when attention's backward runs.
	Parallel bool
	// Checkpoint: the checkpoint of the layer's unit keeps its input.
	Checkpoint bool
	// RotaryCopies: the layer gets a copy of the cosines and sines of its own.
	RotaryCopies bool
	Train        bool
	Precision    costmodel.Precision
	Attention    string
	// Kernels is the source of Mamba-2's.
	Kernels string
	Loss    string
	// HeadCasts: the head's weight is fp32, and cast a tile at a time.
	HeadCasts bool
	// OneKernel: a norm is one kernel that keeps its input, and a gated product one that
	// keeps its factors (Liger, TorchInductor).
	OneKernel bool
	// Compiled: the model is one graph of torch.compile, or with InParts several.
	Compiled, InParts bool

	// NewGrads are the gradients that the layer's backward makes and leaves;
	// SecondGrads those it makes for a parameter that already has one (a tied
	// parameter, used again later in forward) and adds to it.
	NewGrads, SecondGrads int64
	// Weights is the number of parameters in the layer.
	Weights int64

	// Frozen: the weights take no gradient, so that what they alone need is not
	// kept; Adapters do. InputGrad: gradients continue to the layer's input.
	Frozen, InputGrad bool
	Adapters          []Adapter
	Adapters16        bool // they are read in 16 bits
	AdapterCasts      bool // autocast casts them and their inputs to 16 bits
	// FusedAdapters: axolotl's functions run them if they can.
	FusedAdapters bool
	// Megatron: Megatron-Core runs the layer. CoreAttention: it recomputes the
	// kernel's call.
	Megatron, CoreAttention bool
	// Sequence is over how many GPUs tokens are cut outside of attention and of
	// feed-forward networks (sequence parallelism); 0: 1.
	Sequence int64
	// Context is over how many GPUs torchtitan cuts sequences, of all of whose tokens
	// FlexAttention reads keys and values; Tensor over how many it cuts matrices; 0: 1.
	Context, Tensor int64
	// Routed are the tokens, each as often as it is routed, that the GPU's experts get;
	// Dispatched: from other GPUs, too.
	Routed         int64
	Dispatched     bool
	AdapterDropout bool // on their inputs
	// LinearInputs: frozen linear layers keep their inputs.
	LinearInputs bool
	// Recompute: forward runs again in backward, up to the last tensor that is
	// kept (torch/utils/checkpoint.py, early_stop).
	Recompute bool
	Quantize  string // of the linear layers' weights
	Float8    Float8 // torchao's linear layers
	// Modules are those that run the model: Transformers', or a program's own.
	Modules Modules
	// Shared: the layer is one GPU's part of one that several share (tensor
	// parallelism); its outputs are summed over them, or, of the head, cut.
	Shared bool
}

// Float8 is how torchao's Float8Linear (0.18, float8/float8_linear.py) runs the linear
// layers of blocks. It keeps its input and its weight as they are, and makes 8-bit
// copies for each product.
type Float8 struct {
	On bool
	// Gathered: FSDP2 gathers the weights in 8 bits (float8/fsdp_utils.py,
	// WeightWithDynamicFloat8CastTensor).
	Gathered bool
	// Pads: both operands are copied, padded or not, before each product
	// (float8_ops.py, preprocess_addmm: pad_inner_dim).
	Pads bool
	// First: the model's first linear layer is in this one, and stays as it is
	// (accelerate 1.15, utils/ao.py, find_first_last_linear_layers).
	First bool
}

// elementBytes is the size of an element in matrix products, streamBytes one in
// the residual stream.
func (shape *Shape) elementBytes() int64 { return ComputeBytes(shape.Precision) }
func (shape *Shape) streamBytes() int64  { return StreamBytes(shape.Precision) }

// weightBytes is the size of a weight and of its gradient.
func (shape *Shape) weightBytes() int64 { return WeightBytes(shape.Precision) }

// half reports a 16-bit residual stream, where fp32 inside a norm is a copy.
func (shape *Shape) half() bool { return shape.streamBytes() == 2 }

// casts is what autocast keeps for so many linear layers on an input of width dim:
// a 16-bit copy of the input each, and of the weights.
// Quantised weights have no such copy (bitsandbytes makes its own), nor have those
// that torchao casts itself.
func (shape *Shape) casts(linears, dim, weights int64) int64 {
	if shape.Quantize != "" || shape.Float8.On {
		weights = 0
	}
	return shape.plainCasts(linears, dim, weights)
}

// plainCasts are those of linear layers that are never quantised.
func (shape *Shape) plainCasts(linears, dim, weights int64) int64 {
	if !MixedPrecision(shape.Precision) || !shape.Train {
		return 0
	}
	if shape.Frozen {
		linears = 0 // an input is kept for its weight's gradient
	}
	return 2*linears*dim*shape.Tokens + 2*weights
}

// reduced is what the sum over the GPUs that share a layer takes in addition to
// their parts: a copy of the output (torch 2.11,
// csrc/distributed/c10d/Functional.cpp, all_reduce: input.clone).
func (shape *Shape) reduced(dim int64) int64 {
	if !shape.Shared {
		return 0
	}
	return shape.elementBytes() * dim * shape.Tokens
}

// MixedPrecision reports whether compute runs under autocast on fp32 weights.
func MixedPrecision(precision costmodel.Precision) bool {
	return precision == costmodel.BF16Mixed || precision == costmodel.FP16Mixed
}

// HalfPrecision reports fp16.
func HalfPrecision(precision costmodel.Precision) bool {
	return precision == costmodel.FP16True || precision == costmodel.FP16Mixed
}

// WeightBytes is the size of one weight, gradient or optimizer state.
func WeightBytes(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True || MixedPrecision(precision) {
		return 4
	}
	return 2
}

// ComputeBytes is the size of one element in matrix products.
func ComputeBytes(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True {
		return 4
	}
	return 2
}

// StreamBytes is the size of one element of the residual stream.
func StreamBytes(precision costmodel.Precision) int64 { return WeightBytes(precision) }

// Modules is whose modules run the model.
type Modules string

// Programs with modules of their own; the others run Transformers'.
const (
	Torchtune  Modules = "torchtune"
	Torchtitan Modules = "torchtitan"
)

// chunked reports a loss that the program makes of chunks.
func (shape *Shape) chunked(modules Modules) bool {
	return shape.Modules == modules && shape.Loss == value.LossChunked
}
