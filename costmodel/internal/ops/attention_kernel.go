package ops

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// philox is the bytes of the seed and the offset that one call of the flash kernel keeps, one
// allocator block each (attention.cu, _flash_attention_forward).
const philox = 2 * 512

// attentionKernel is the kernel that computes softmax(q·kᵀ)·v.
type attentionKernel int

const (
	// flashKernel needs 16-bit types and no mask, and allows grouped queries. It is PyTorch's copy,
	// or the flash-attn package, which allows windows.
	flashKernel attentionKernel = iota
	// efficientKernel is the memory-efficient kernel: it allows fp32 and masks, but no grouped
	// queries.
	efficientKernel
	// scoresInMemory is any kernel that materializes the score matrix: SDPA's math kernel, and the
	// eager function of the modeling code.
	scoresInMemory
)

// kernelOf returns PyTorch's choice, or the requested eager function, or the flash-attn package
// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp). There, use_flash_attention requires fp16
// or bf16 and no mask. use_mem_efficient_attention instantiates
// check_batch_size_and_num_heads_dense without grouped queries.
func (op attention) kernelOf(dims *geo, shape *Shape) attentionKernel {
	switch {
	case sdpaBias(&op, shape) && op.Cross: // a bias of zeros, contiguous (modeling_t5.py)
		if shape.elementBytes() == 4 {
			return efficientKernel
		}
		return flashKernel
	case copies(&op, shape):
		return efficientKernel
	case op.Eager && (!op.FP32Scores || shape.Attention != value.FlashAttention) || shape.Attention == value.EagerAttention || inMath(&op, shape):
		return scoresInMemory
	case shape.Attention == value.FlashAttention:
		return flashKernel
	case dims.masked > 0:
		return efficientKernel // with repeated keys and values
	case shape.elementBytes() < 4:
		return flashKernel
	case op.KVHeads < op.Heads:
		return scoresInMemory
	}
	return efficientKernel
}

// inMath reports SDPA's math kernel in 16 bits. Without enable_gqa, fused kernels reject unequal
// heads (sdp_utils_cpp.h, check_batch_size_and_num_heads_dense). They also reject a bias whose last
// stride is not 1 (check_last_dim_stride_equals_1_dense).
func inMath(op *attention, shape *Shape) bool {
	takes := op.KVHeads < op.Heads && !op.Eager || hasBias(op, shape) && !op.Cross && !copies(op, shape)
	return takes && op.Unfused && shape.Attention == "" && shape.elementBytes() < 4
}

// savedByMath returns the bytes that the math kernel keeps: q, k and v in fp32 with all heads,
// softmax's fp32 result, and the 16-bit output (attention.cpp, _scaled_dot_product_attention_math).
func savedByMath(op *attention, dims *geo, shape *Shape) int64 {
	dropped := int64(0)
	if hasBias(op, shape) {
		dropped = biasSaved(op, shape)
		if op.Dropout { // of the weights, too: the result and a mask
			dropped += 5 * dims.scores
		}
	}
	return dropped + 4*shape.Tokens*dims.q + 4*dims.kvTokens*(dims.q+dims.out) + 4*dims.scores + shape.elementBytes()*shape.Tokens*dims.out
}

// mathForward returns the math kernel's peak without gradients. It has the projections' outputs,
// rotated q, all in fp32 with scaled q, scores and softmax, the mask of −∞ scores, and the mask's
// bias.
func (dims *geo) mathForward(op *attention, shape *Shape) int64 {
	element, q, kv := shape.elementBytes(), shape.Tokens*dims.q, dims.kvTokens*(dims.k+dims.v)
	if hasBias(op, shape) { // no rotation, and the bias is for one sequence
		bias, made := biasBytes(op, shape), element*q
		if op.Bidirectional {
			made += element * kv
		}
		if op.BiasCopied {
			return made + copiedBias(op, shape, bias)
		}
		return made + bias + 4*(2*q+kv) + 9*dims.scores // bias: includes the causal mask, or is kept for the encoder's layers
	}
	return element*(2*q+kv) + 4*(2*q+kv) + 9*dims.scores + element*shape.Tokens*shape.Length
}

// copies reports a bias that a fused kernel takes as a copy.
func copies(op *attention, shape *Shape) bool {
	return op.BiasCopied && !op.Cross && sdpaBias(op, shape) && shape.Train
}

// copiedBias returns the bytes of the bias that a fused kernel gets: its values, those with the
// causal mask, and the copy. Before, the layer that makes it has five matrices of positions, and one
// of logarithms (modeling_t5.py, _relative_position_bucket).
func copiedBias(op *attention, shape *Shape, bias int64) int64 {
	work := 2 * bias
	if !op.Bidirectional && op.BiasMade { // else the stack's variable has the values
		work += bias
	}
	if op.BiasMade {
		work = max(work, 44*shape.Length*shape.Length)
	}
	return work
}

// forwardOfCasts returns the peak of FP32Scores without gradients: casts of q and k, scores and
// their scaled or masked copy, and the weights that the previous layer returned.
func forwardOfCasts(op *attention, dims *geo, shape *Shape) int64 {
	element, q, k := shape.elementBytes(), shape.Tokens*dims.q, dims.kvTokens*dims.k
	work := element*q + 4*(q+k) + (8+element)*dims.scores
	if op.Turning > 0 { // slices of the projections' outputs, and the rotated parts
		work += element * (q + k + (q+k)*op.Turning/max(1, op.HeadDim))
		if op.Fused { // copies of q and k from the projection's blocks (modeling_codegen.py, _split_heads)
			work += element * (q + k + (q+k)*op.Turning/max(1, op.HeadDim))
		}
	}
	return work
}

// kernelSaved returns the bytes that the kernel and its inputs keep for backward.
func (op attention) kernelSaved(dims *geo, shape *Shape) int64 {
	element, tokens := shape.elementBytes(), shape.Tokens
	saved := element*tokens*dims.q + element*dims.kvTokens*dims.made(op) + element*tokens*dims.out
	if inMath(&op, shape) {
		return savedByMath(&op, dims, shape)
	}
	saved += crossBiasSaved(&op, shape)
	if copies(&op, shape) {
		saved += biasBytes(&op, shape) + biasSaved(&op, shape)
	}
	if unpads(&op, dims, shape) {
		saved += element * (shape.Real*dims.out - (tokens-shape.Real)*(dims.q+dims.made(op)))
	}
	if shape.Modules != "" && dims.by == flashKernel {
		return saved + 4*op.Heads*tokens + seeds(shape)*op.kernelCalls(shape) + native(&op, dims, shape)
	}
	fused := op.Fused && op.Rope // v is a slice that keeps the whole projection (Phi-3)
	switch dims.by {
	case flashKernel:
		saved += 4*op.Heads*tokens + seeds(shape)*op.kernelCalls(shape)
		if fused {
			saved += element * tokens * (dims.q + dims.k)
		}
		if copiesOut(&op) {
			saved += element * tokens * dims.out
		}
	case efficientKernel:
		// The log-sum-exp has rows of a multiple of 32 (attention_backward.cu).
		padded := (shape.Length + 31) / 32 * 32
		saved += 4*op.Heads*tokens/max(1, shape.Length)*padded + 2*512 + dims.masked*element
		if fused {
			saved += element * tokens * (dims.q + dims.k)
		}
	case scoresInMemory:
		saved += scoresSaved(op, dims, shape)
		if fused && shape.Batch == 1 {
			// With several sequences bmm reads a contiguous copy of the slice.
			saved += element * tokens * (dims.q + dims.k)
		}
	}
	return saved
}

// scoresSaved returns the bytes that attention keeps for backward with its scores in memory.
func scoresSaved(op attention, dims *geo, shape *Shape) int64 {
	element := shape.elementBytes()
	saved := dims.repeated*element + dims.scores*op.scoreBytes(shape)
	if op.FP32Scores { // the casts of q and k are kept
		saved += (4 - element) * (shape.Tokens*dims.q + dims.kvTokens*dims.k)
	}
	if op.BiasMade && !op.Cross && addsBias(&op, shape) { // the indices into its table
		saved += 8 * shape.Length * shape.Length
	}
	if op.InnerDropout { // its result and a mask, not the cast that it reads
		_, cast := op.scoreTypes(shape)
		saved += dims.scores * (element + 1 - cast)
	}
	if op.SoftCap && op.written(shape) {
		saved += dims.scores * element // tanh's output (modeling_gemma2.py, eager_attention_forward)
	}
	return saved
}

// copiesOut reports a q with heads as the outer dimension. Flash's output has the same layout, and
// .contiguous() copies it (sdpa_attention.py). A rotated slice has this layout too, unless it was
// cast first (modeling_modernbert.py, apply_rotary_pos_emb).
func copiesOut(op *attention) bool { return op.Turning > 0 || op.Fused && op.Rope && !op.CastRotation }

// copyGone is that copy, which the output's projection has read when the kernel runs.
func copyGone(op *attention, dims *geo, shape *Shape) int64 {
	if shape.Modules != "" || !copiesOut(op) {
		return 0
	}
	return shape.elementBytes() * shape.Tokens * dims.out
}

// scoreBytes is what is kept an element of the score matrix: softmax's fp32
// result, and its cast that multiplies v (modeling_llama.py,
// eager_attention_forward; _scaled_dot_product_attention_math, if both are
// one).
func (op attention) scoreBytes(shape *Shape) int64 {
	result, cast := op.scoreTypes(shape)
	return result + cast
}

// scoreTypes returns the bytes per element of softmax's result and of its cast; cast is 0 if the
// result itself multiplies v.
func (op attention) scoreTypes(shape *Shape) (result, cast int64) {
	element := shape.elementBytes()
	switch {
	case inMath(&op, shape):
		return 4, 0
	case op.OwnScores && !MixedPrecision(shape.Precision):
		return element, 0
	}
	if element == 4 {
		return element, 0
	}
	return 4, element
}

// kernelForward returns the kernel's peak memory in forward in addition to the tensors that it
// keeps.
func (op attention) kernelForward(dims *geo, shape *Shape) int64 {
	if dims.by != scoresInMemory {
		return 0
	}
	if op.OwnScores && !MixedPrecision(shape.Precision) && !inMath(&op, shape) {
		extra := op.ExtraScores
		if !op.InnerDropout { // softmax's input; it is freed before a dropout runs
			extra++
		}
		return extra * shape.elementBytes() * dims.scores
	}
	// Softmax reads 4 bytes per element in addition to its result. In 16 bits the scores before the
	// cast exist too.
	if op.scoreBytes(shape) == 4+shape.elementBytes() && !MixedPrecision(shape.Precision) {
		return 4 * dims.scores
	}
	return (8 - op.scoreBytes(shape)) * dims.scores
}

// kernelBackward returns the kernel's peak memory in backward in addition to saved tensors:
// gradients of out, q, k and v, and the kernel's own tensors.
func (op attention) kernelBackward(dims *geo, shape *Shape) int64 {
	element, tokens := shape.elementBytes(), shape.Tokens
	back := element*tokens*(dims.out+dims.q) + element*dims.kvTokens*(dims.k+dims.v)
	switch dims.by {
	case flashKernel:
		// An fp32 accumulator of dq, the rows' dot products, and expanded dk and dv with grouped
		// queries (flash_api.cpp, mha_bwd). Each sequence with bounds adds up to 128 rows
		// (mha_varlen_bwd: total_q + 128 * batch_size).
		rows := tokens
		if bounded(&op, dims, shape) {
			rows = cmp.Or(shape.Real, tokens) + 128*max(shape.Documents, shape.Batch)
		}
		back += 4*rows*dims.q + 4*op.Heads*rows
		if op.KVHeads < op.Heads {
			back += 2 * element * tokens * dims.q
		}
		back += nativeBackward(&op, dims, shape) - copyGone(&op, dims, shape)
	case efficientKernel:
		back += 4*op.Heads*tokens + dims.masked*element
		if element < 4 {
			back += 4 * tokens * dims.q
		}
	case scoresInMemory:
		// Softmax's backward: the gradient of its result, their product, and the gradient of its
		// input (SoftMax.cu, softmax_backward_cuda_out), in addition to v's gradient. The cast that
		// multiplied v, v itself, and the input of the output's projection are freed.
		result, cast := op.scoreTypes(shape)
		back = (3*result-cast)*dims.scores - element*tokens*dims.out - shape.casts(0, 0, op.Dim*dims.out)
		if op.InnerDropout && !inMath(&op, shape) {
			back -= dims.scores * (element + 1 - cast)
		}
		if inMath(&op, shape) {
			back -= 4 * dims.kvTokens * dims.out // v with all heads
		}
		if hasBias(&op, shape) && !shape.Frozen && !op.BiasOwn { // its gradient, and the sum of later layers' gradients
			back += 2 * biasBytes(&op, shape)
		}
		if hasBias(&op, shape) && op.Dropout {
			back -= 5 * dims.scores // the dropout's result and mask are freed
		}
	}
	return back
}

// unpads reports flash-attn on padded rows. It copies the tokens without padding, and its output
// with the padding (transformers/modeling_flash_attention_utils.py, _upad_input, _pad_input).
func unpads(op *attention, dims *geo, shape *Shape) bool {
	return dims.by == flashKernel && shape.Attention == value.FlashAttention && shape.Unpads && !op.Cross
}

// bounded reports a flash kernel with bounds of the sequences in one row.
func bounded(op *attention, dims *geo, shape *Shape) bool {
	byPosition := shape.Documents > shape.Batch && (shape.Batch == 1 && shape.Attention == value.FlashAttention || shape.Varlen)
	return !op.Cross && (unpads(op, dims, shape) || byPosition)
}

// seeds returns the bytes of one call's seeds. The flash-attn package keeps both in one tensor
// (flash_attn_interface.py, FlashAttnFunc: rng_state).
func seeds(shape *Shape) int64 {
	if shape.Attention == value.FlashAttention {
		return philox / 2
	}
	return philox
}

// kernelCalls returns the number of calls of the attention kernel. That is one, or for packed
// images one per window or image, by torch.split (modeling_qwen2_5_vl.py
// Qwen2_5_VLVisionAttention.forward). A window at the image's edge may be smaller, and counts as an
// average one.
func (op attention) kernelCalls(shape *Shape) int64 {
	if !op.Packed || shape.Attention == value.FlashAttention { // it takes cu_seqlens
		return 1
	}
	chunk := shape.Length
	if op.Window > 0 {
		chunk = min(chunk, op.Window)
	}
	return max(1, (shape.Tokens+chunk-1)/max(1, chunk))
}

// Kernel returns the kernel of an op's attention: flash, memory-efficient, or neither, which
// materializes the scores. masked reports that it has a mask. All are false for other ops.
func Kernel(op modelgraph.Op, shape *Shape) (flash, efficient, masked bool) {
	asked, ok := operationOf(op).(attention)
	if !ok {
		return false, false, false
	}
	dims := asked.geometry(shape)
	return dims.by == flashKernel, dims.by == efficientKernel, dims.masked > 0
}

// Scores returns the bytes per element of an attention's kept score tensors: softmax's result, and
// its cast.
func Scores(op modelgraph.Attention, shape *Shape) (sizes []int64) {
	asked := attention{Attention: op}
	dims := asked.geometry(shape)
	if dims.by != scoresInMemory {
		return nil
	}
	result, cast := asked.scoreTypes(shape)
	for _, each := range []int64{result, cast} {
		if each > 0 {
			sizes = append(sizes, each*dims.scores)
		}
	}
	return sizes
}

// native returns the additional bytes that a program's own modules keep around an attention kernel.
func native(op *attention, dims *geo, shape *Shape) int64 {
	switch shape.Modules {
	case Torchtune:
		// Keys and values are expanded to all heads (modules/attention.py).
		return shape.elementBytes() * dims.repeated
	case Torchtitan:
		// FlexAttention has no seeds. Every layer gathers the complex rotation of each position
		// (models/common/rope.py, _reshape_for_broadcast).
		saved := -seeds(shape) * op.kernelCalls(shape)
		if op.Rope {
			saved += 4 * op.HeadDim * shape.Tokens
		}
		if op.Rope && op.QKNorm != "" { // Qwen3 has cosines and sines instead (CosSinRoPE)
			saved += 4 * op.HeadDim * shape.Tokens
		}
		return saved + othersKeys(shape, dims)
	}
	return 0
}

// nativeBackward returns the additional bytes in the kernel's backward: gradients of all heads'
// keys and values, or FlexAttention's, which needs no accumulator.
func nativeBackward(op *attention, dims *geo, shape *Shape) int64 {
	wide := int64(0)
	if op.KVHeads < op.Heads {
		wide = 2 * shape.elementBytes() * shape.Tokens * dims.q // the expanded dk and dv of grouped queries
	}
	switch shape.Modules {
	case Torchtune:
		return shape.elementBytes()*dims.repeated - wide
	case Torchtitan:
		return -wide - 4*shape.Tokens*dims.q
	}
	return 0
}
