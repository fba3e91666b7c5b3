package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Shape is a layer's view of one micro-batch.
type Shape struct {
	// Followed: other code counts the allocator's additions to tensors.
	Followed bool
	Tokens   int64 // N
	Length   int64 // tokens of one sequence
	Batch    int64 // sequences
	// Encoder is the number of tokens that cross-attention reads.
	Encoder int64
	// Cache is the final number of tokens in a sequence's KV cache.
	Cache int64
	// Logits is the number of positions that the head projects.
	Logits int64

	// Real is the number of tokens without padding; 0: all. Documents is the number of sequences
	// that attention separates; 0: one per row.
	Real, Documents int64
	// Masked: SDPA has a mask of every row, because rows are padded or have several documents.
	// MaskGiven: the caller made it, in the compute type. Varlen: torch's kernel has the bounds of
	// the documents instead.
	Masked, MaskGiven, Varlen bool
	// Unpads: flash-attn has copies of the tokens without padding.
	Unpads bool
	// Positions: every row has its own positions.
	Positions bool

	// HeadAlone: the layer is the norm before the head, or the head after a norm. The head's GPU
	// keeps its input.
	HeadAlone bool
	// Inputs: the layer embeds a decoder's tokens. The model's forward keeps its output in a
	// variable.
	Inputs bool
	// Given: the layer reads the caller's pixels or audio, which exist throughout the step.
	Given bool
	// Persists: the layer's output is another stack's output that a decoder reads, the tokens'
	// embeddings of such a decoder, or an image's. The model's forward keeps it in a variable.
	Persists bool
	// StackOutput is the bytes of another stack's output, which a model with a head also returns.
	StackOutput int64
	// Images: sequences have images.
	Images bool
	// Scatter: image features replace tokens in the layer's output.
	Scatter bool
	// InputSaved: the layer that made the input keeps it.
	InputSaved bool
	// StreamInput: no norm comes before, so linear layers keep the residual stream itself.
	StreamInput bool
	// SameResidual: the residual is the input itself, for example if norms follow.
	SameResidual bool
	// InputShared: another LayerNorm keeps the same input (parallel parts with a norm each).
	InputShared bool
	// Parallel: a feed-forward reads the same norm's output, and has made its gradient before
	// attention's backward runs.
	Parallel bool
	// Checkpoint: the checkpoint of the layer's unit keeps its input.
	Checkpoint bool
	// RotaryCopies: the layer gets its own copy of the cosines and sines.
	RotaryCopies bool
	Train        bool
	Precision    costmodel.Precision
	Attention    string
	// Kernels is the source of Mamba-2's kernels.
	Kernels string
	Loss    string
	// HeadCasts: the head's weight is fp32, and is cast one tile at a time.
	HeadCasts bool
	// OneKernel: a norm is one kernel that keeps its input, and a gated product is one that keeps
	// its factors (Liger, TorchInductor).
	OneKernel bool
	// Compiled: the model is one graph of torch.compile; with InParts it is several.
	Compiled, InParts bool

	// NewGrads is the bytes of gradients that the layer's backward makes and leaves. SecondGrads is
	// the bytes it makes for a parameter that already has a gradient, and adds to it. That is a
	// tied parameter, used again later in forward.
	NewGrads, SecondGrads int64
	// Weights is the number of parameters in the layer.
	Weights int64

	// Frozen: the weights get no gradient, so tensors that only they need are not kept; Adapters
	// are trained. InputGrad: gradients continue to the layer's input.
	Frozen, InputGrad bool
	Adapters          []Adapter
	Adapters16        bool // their copies are in 16 bits
	AdapterCasts      bool // autocast casts them and their inputs to 16 bits
	// FusedAdapters: axolotl's functions run the adapters if they can.
	FusedAdapters bool
	// Megatron: Megatron-Core runs the layer. CoreAttention: it recomputes the kernel's call.
	Megatron, CoreAttention bool
	// Sequence is the number of GPUs that share tokens outside of attention and of feed-forward
	// networks (sequence parallelism); 0: 1.
	Sequence int64
	// Context is the number of GPUs that share torchtitan's sequences; FlexAttention reads the keys
	// and values of all their tokens. Tensor is the number of GPUs that share its matrices. 0: 1.
	Context, Tensor int64
	// Routed is the number of tokens for the GPU's experts; a token counts once per expert.
	// Dispatched: some come from other GPUs.
	Routed         int64
	Dispatched     bool
	AdapterDropout bool // on their inputs
	// LinearInputs: frozen linear layers keep their inputs.
	LinearInputs bool
	// Recompute: forward runs again in backward, up to the last kept tensor
	// (torch/utils/checkpoint.py, early_stop).
	Recompute bool
	Quantize  string // of the linear layers' weights
	Float8    Float8 // torchao's linear layers
	// Modules are the modules that run the model: Transformers', or a program's own.
	Modules Modules
	// Shared: several GPUs share the layer, and this is one GPU's part (tensor parallelism).
	// Outputs are summed over them; the head's are sharded.
	Shared bool
}

// Float8 says how torchao's Float8Linear (0.18, float8/float8_linear.py) runs the linear layers of
// blocks. It keeps the original input and weight, and makes 8-bit copies for each product.
type Float8 struct {
	On bool
	// Gathered: FSDP2 gathers the weights in 8 bits (float8/fsdp_utils.py,
	// WeightWithDynamicFloat8CastTensor).
	Gathered bool
	// Pads: both operands are copied before each product, even if no padding is needed
	// (float8_ops.py, preprocess_addmm: pad_inner_dim).
	Pads bool
	// First: the layer has the model's first linear layer, which is not converted (accelerate 1.15,
	// utils/ao.py, find_first_last_linear_layers).
	First bool
}

// elementBytes is the bytes of an element in matrix products, streamBytes in the residual stream.
func (shape *Shape) elementBytes() int64 { return ComputeBytes(shape.Precision) }
func (shape *Shape) streamBytes() int64  { return StreamBytes(shape.Precision) }

// weightBytes returns the bytes of a weight and of its gradient.
func (shape *Shape) weightBytes() int64 { return WeightBytes(shape.Precision) }

// half reports a 16-bit residual stream, so that fp32 inside a norm is a copy.
func (shape *Shape) half() bool { return shape.streamBytes() == 2 }

// casts returns the bytes that autocast keeps for some linear layers on an input of width dim: a
// 16-bit copy of the input each, and of the weights. Quantized weights have no such copy
// (bitsandbytes makes its own), nor have those that torchao casts.
func (shape *Shape) casts(linears, dim, weights int64) int64 {
	if shape.Quantize != "" || shape.Float8.On {
		weights = 0
	}
	return shape.plainCasts(linears, dim, weights)
}

// plainCasts is casts for linear layers that are never quantized.
func (shape *Shape) plainCasts(linears, dim, weights int64) int64 {
	if !MixedPrecision(shape.Precision) || !shape.Train {
		return 0
	}
	if shape.Frozen {
		linears = 0 // an input is kept only for its weight's gradient
	}
	return 2*linears*dim*shape.Tokens + 2*weights
}

// reduced returns the bytes that the sum of a shared layer over the GPUs needs: a copy of the
// output (torch 2.11, csrc/distributed/c10d/Functional.cpp, all_reduce: input.clone). The GPUs' own
// parts are not in it.
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

// WeightBytes returns the bytes of one weight, gradient or optimizer state.
func WeightBytes(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True || MixedPrecision(precision) {
		return 4
	}
	return 2
}

// ComputeBytes returns the bytes of one element in matrix products.
func ComputeBytes(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True {
		return 4
	}
	return 2
}

// StreamBytes returns the bytes of one element of the residual stream.
func StreamBytes(precision costmodel.Precision) int64 { return WeightBytes(precision) }

// Modules names the program whose modules run the model.
type Modules string

// Programs with their own modules; all others use Transformers'.
const (
	Torchtune  Modules = "torchtune"
	Torchtitan Modules = "torchtitan"
)

// chunked reports a program's loss in chunks.
func (shape *Shape) chunked(modules Modules) bool {
	return shape.Modules == modules && shape.Loss == value.LossChunked
}
