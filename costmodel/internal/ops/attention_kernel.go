package ops

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// philox is the seed and the offset that one call of the flash kernel keeps,
// a block of the allocator each (attention.cu, _flash_attention_forward).
const philox = 2 * 512

// attentionKernel is what computes softmax(q·kᵀ)·v.
type attentionKernel int

const (
	// flashKernel takes 16-bit types, grouped queries, and no mask; PyTorch's
	// copy of it, or the flash-attn package's own, which takes windows.
	flashKernel attentionKernel = iota
	// efficientKernel is the memory-efficient one: fp32 and masks, but no
	// grouped queries.
	efficientKernel
	// scoresInMemory is any that writes the score matrix down: SDPA's math
	// kernel, and the eager function of the modelling code.
	scoresInMemory
)

// kernelOf is PyTorch's choice, or the eager function that was asked for, or the
// flash-attn package (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp). There,
// use_flash_attention wants fp16 or bf16 and no mask. use_mem_efficient_attention
// instantiates check_batch_size_and_num_heads_dense without grouped queries.
func (op attention) kernelOf(dims *geo, shape *Shape) attentionKernel {
	switch {
	case hasBias(&op, shape) && op.Cross: // a bias of zeros, contiguous (modeling_t5.py)
		return flashKernel
	case op.Eager && (!op.FP32Scores || shape.Attention != value.FlashAttention) || shape.Attention == value.EagerAttention || inMath(&op, shape):
		return scoresInMemory
	case shape.Attention == value.FlashAttention:
		return flashKernel
	case dims.masked > 0:
		return efficientKernel // of repeated keys and values
	case shape.elementBytes() < 4:
		return flashKernel
	case op.KVHeads < op.Heads:
		return scoresInMemory
	}
	return efficientKernel
}

// inMath reports SDPA's math kernel in 16 bits. No fused kernel takes unequal heads
// without enable_gqa (sdp_utils_cpp.h, check_batch_size_and_num_heads_dense), or a bias
// whose last stride is not 1 (check_last_dim_stride_equals_1_dense).
func inMath(op *attention, shape *Shape) bool {
	takes := op.KVHeads < op.Heads && !op.Eager || hasBias(op, shape) && !op.Cross
	return takes && op.Unfused && shape.Attention == "" && shape.elementBytes() < 4
}

// savedByMath is what that kernel keeps: q, k and v in fp32 with all heads, softmax's
// fp32 result, and the 16-bit output (attention.cpp, _scaled_dot_product_attention_math).
func savedByMath(op *attention, dims *geo, shape *Shape) int64 {
	dropped := int64(0)
	if hasBias(op, shape) && op.Dropout { // of the weights, too: the result and a mask
		dropped = 5 * dims.scores
	}
	if hasBias(op, shape) {
		dropped += biasSaved(op, shape)
	}
	return dropped + 4*shape.Tokens*dims.q + 4*dims.kvTokens*(dims.q+dims.out) + 4*dims.scores + shape.elementBytes()*shape.Tokens*dims.out
}

// mathForward is its most without gradients: the projections' outputs, q turned, all in
// fp32 and q scaled, scores and softmax, which of them are −∞, and the mask's bias.
func (dims *geo) mathForward(op *attention, shape *Shape) int64 {
	element, q, kv := shape.elementBytes(), shape.Tokens*dims.q, dims.kvTokens*(dims.k+dims.v)
	if hasBias(op, shape) { // nothing turns, and the bias is of one sequence
		bias, made := biasBytes(op, shape), element*q
		if op.Bidirectional {
			made += element * kv
		}
		return made + bias + 4*(2*q+kv) + 9*dims.scores // bias: with the causal mask in it, or held for the encoder's layers
	}
	return element*(2*q+kv) + 4*(2*q+kv) + 9*dims.scores + element*shape.Tokens*shape.Length
}

// forwardOfCasts is the most of FP32Scores without gradients: q and k cast, scores and what
// division or the mask makes of them, and the weights that the layer before returned.
func forwardOfCasts(op *attention, dims *geo, shape *Shape) int64 {
	element, q, k := shape.elementBytes(), shape.Tokens*dims.q, dims.kvTokens*dims.k
	work := element*q + 4*(q+k) + (8+element)*dims.scores
	if op.Turning > 0 { // slices of the projections' outputs, and the parts that turned
		work += element * (q + k + (q+k)*op.Turning/max(1, op.HeadDim))
		if op.Fused { // copies of q and k from the projection's blocks (modeling_codegen.py, _split_heads)
			work += element * (q + k + (q+k)*op.Turning/max(1, op.HeadDim))
		}
	}
	return work
}

// kernelSaved is what the kernel and its inputs keep for backward.
func (op attention) kernelSaved(dims *geo, shape *Shape) int64 {
	element, tokens := shape.elementBytes(), shape.Tokens
	saved := element*tokens*dims.q + element*dims.kvTokens*dims.made(op) + element*tokens*dims.out
	if inMath(&op, shape) {
		return savedByMath(&op, dims, shape)
	}
	saved += crossBiasSaved(&op, shape)
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
		// attention_backward.cu: log-sum-exp in rows of a multiple of 32.
		padded := (shape.Length + 31) / 32 * 32
		saved += 4*op.Heads*tokens/max(1, shape.Length)*padded + 2*512 + dims.masked*element
		if fused {
			saved += element * tokens * (dims.q + dims.k)
		}
	case scoresInMemory:
		saved += scoresSaved(op, dims, shape)
		if fused && shape.Batch == 1 {
			// With more sequences bmm reads a contiguous copy of the slice.
			saved += element * tokens * (dims.q + dims.k)
		}
	}
	return saved
}

// scoresSaved is what attention keeps for backward with its scores in memory.
func scoresSaved(op attention, dims *geo, shape *Shape) int64 {
	element := shape.elementBytes()
	saved := dims.repeated*element + dims.scores*op.scoreBytes(shape)
	if op.FP32Scores { // of q and k, the casts are kept
		saved += (4 - element) * (shape.Tokens*dims.q + dims.kvTokens*dims.k)
	}
	if op.BiasMade && !op.Cross && addsBias(&op, shape) { // the buckets that its table was read by
		saved += 8 * shape.Length * shape.Length
	}
	if op.InnerDropout { // its result and a mask
		saved += dims.scores * (element + 1)
	}
	if op.SoftCap {
		saved += dims.scores * element // tanh's output (modeling_gemma2.py, eager_attention_forward)
	}
	return saved
}

// copiesOut reports a q that is laid out by heads. Flash's output follows it, and
// .contiguous() copies that (sdpa_attention.py). A rotated slice has this layout, too, but
// not one that was cast first (modeling_modernbert.py, apply_rotary_pos_emb).
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
// one). GPT-2's softmax runs in the type of the scores, fp32 under autocast
// (modeling_gpt2.py).
func (op attention) scoreBytes(shape *Shape) int64 {
	result, cast := op.scoreTypes(shape)
	return result + cast
}

// scoreTypes are the sizes of an element of softmax's result and of its cast,
// 0 where the result itself multiplies v.
func (op attention) scoreTypes(shape *Shape) (result, cast int64) {
	element := shape.elementBytes()
	switch {
	case inMath(&op, shape):
		return 4, 0
	case op.OwnScores && !MixedPrecision(shape.Precision):
		return element, 0
	}
	if op.Fused && !op.Rope && !op.Eager && !MixedPrecision(shape.Precision) || element == 4 {
		return element, 0
	}
	return 4, element
}

// kernelForward is the kernel's peak memory in forward above what it
// keeps.
func (op attention) kernelForward(dims *geo, shape *Shape) int64 {
	if dims.by != scoresInMemory {
		return 0
	}
	if op.OwnScores && !MixedPrecision(shape.Precision) && !inMath(&op, shape) {
		extra := op.ExtraScores
		if !op.InnerDropout { // what softmax reads; a dropout comes when this is gone
			extra++
		}
		return extra * shape.elementBytes() * dims.scores
	}
	// softmax reads 4 bytes an element in addition to what it makes; in 16 bits
	// the scores before the cast are there too.
	if op.scoreBytes(shape) == 4+shape.elementBytes() && !MixedPrecision(shape.Precision) {
		return 4 * dims.scores
	}
	return (8 - op.scoreBytes(shape)) * dims.scores
}

// kernelBackward is what backward of the kernel holds above what is saved:
// gradients of out, q, k and v, and the kernel's own.
func (op attention) kernelBackward(dims *geo, shape *Shape) int64 {
	element, tokens := shape.elementBytes(), shape.Tokens
	back := element*tokens*(dims.out+dims.q) + element*dims.kvTokens*(dims.k+dims.v)
	switch dims.by {
	case flashKernel:
		// An fp32 accumulator of dq, the rows' dot products, and expanded dk
		// and dv under grouped queries (flash_api.cpp, mha_bwd).
		// Each sequence of those that have bounds adds up to 128 rows
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
		// softmax's backward: the gradient of its result, their product, and
		// the gradient of its input (SoftMax.cu, softmax_backward_cuda_out), in
		// addition to v's. The cast that multiplied v, v, and what the output's
		// projection kept are gone.
		result, cast := op.scoreTypes(shape)
		back = (3*result-cast)*dims.scores - element*tokens*dims.out - shape.casts(0, 0, op.Dim*dims.out)
		if op.InnerDropout && !inMath(&op, shape) {
			back -= dims.scores * (element + 1)
		}
		if inMath(&op, shape) {
			back -= 4 * dims.kvTokens * dims.out // v with all heads
		}
		if hasBias(&op, shape) && !shape.Frozen && !op.BiasOwn { // its gradient, and the sum of those of later layers
			back += 2 * biasBytes(&op, shape)
		}
		if hasBias(&op, shape) && op.Dropout {
			back -= 5 * dims.scores // the dropout's result and mask are gone
		}
	}
	return back
}

// unpads reports flash-attn on padded rows: copies of the tokens without
// padding, and of its output with the padding again
// (transformers/modeling_flash_attention_utils.py, _upad_input, _pad_input).
func unpads(op *attention, dims *geo, shape *Shape) bool {
	return dims.by == flashKernel && shape.Attention == value.FlashAttention && shape.Unpads && !op.Cross
}

// bounded reports a flash kernel that takes the bounds of sequences in one row.
func bounded(op *attention, dims *geo, shape *Shape) bool {
	byPosition := shape.Documents > shape.Batch && (shape.Batch == 1 && shape.Attention == value.FlashAttention || shape.Varlen)
	return !op.Cross && (unpads(op, dims, shape) || byPosition)
}

// seeds are those of one call: the flash-attn package keeps both in one tensor
// (flash_attn_interface.py, FlashAttnFunc: rng_state).
func seeds(shape *Shape) int64 {
	if shape.Attention == value.FlashAttention {
		return philox / 2
	}
	return philox
}

// kernelCalls is how many times the attention kernel is called: once, or if images
// lie packed, for each window or image, by torch.split (modeling_qwen2_5_vl.py
// Qwen2_5_VLVisionAttention.forward). A window at the image's edge may be smaller,
// and counts in the mean.
func (op attention) kernelCalls(shape *Shape) int64 {
	if !op.Packed || shape.Attention == value.FlashAttention { // which takes cu_seqlens
		return 1
	}
	chunk := shape.Length
	if op.Window > 0 {
		chunk = min(chunk, op.Window)
	}
	return max(1, (shape.Tokens+chunk-1)/max(1, chunk))
}

// Kernel is what computes an op's attention, if it is one: a flash kernel, the
// memory-efficient one, or neither, which writes the scores down; and whether
// it is given a mask.
func Kernel(op modelgraph.Op, shape *Shape) (flash, efficient, masked bool) {
	asked, ok := operationOf(op).(attention)
	if !ok {
		return false, false, false
	}
	dims := asked.geometry(shape)
	return dims.by == flashKernel, dims.by == efficientKernel, dims.masked > 0
}

// Scores are the sizes of the tensors of an attention's scores that are kept: softmax's
// result, and its cast.
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

// native is an attention kernel's share that a program's own modules change:
// what is kept in addition.
func native(op *attention, dims *geo, shape *Shape) int64 {
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
		if op.Rope && op.QKNorm != "" { // Qwen3 has cosines and sines instead (CosSinRoPE)
			saved += 4 * op.HeadDim * shape.Tokens
		}
		return saved + othersKeys(shape, dims)
	}
	return 0
}

// nativeBackward is the same of the kernel's backward: gradients of all heads'
// keys and values, or FlexAttention's, which needs no accumulator.
func nativeBackward(op *attention, dims *geo, shape *Shape) int64 {
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
