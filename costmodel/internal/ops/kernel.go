package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

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

// kernelOf is PyTorch's choice (aten/src/ATen/native/transformers/cuda/
// sdp_utils.cpp: use_flash_attention wants fp16 or bf16 and no mask,
// use_mem_efficient_attention instantiates
// check_batch_size_and_num_heads_dense without grouped queries), or the eager
// function that --attention eager asks for, or the flash-attn package.
func kernelOf(op modelgraph.Attention, g *geo, s *Shape) attentionKernel {
	switch {
	case op.Eager || s.Attention == costmodel.EagerAttention:
		return scoresInMemory
	case s.Attention == costmodel.FlashAttention:
		return flashKernel
	case g.masked > 0:
		return efficientKernel // of repeated keys and values
	case s.e() < 4:
		return flashKernel
	case op.KVHeads < op.Heads:
		return scoresInMemory
	}
	return efficientKernel
}

// kernelSaved is what the kernel and its inputs keep for backward.
func kernelSaved(op modelgraph.Attention, g *geo, s *Shape) int64 {
	e, n := s.e(), s.Tokens
	saved := e*n*g.q + e*g.kvTokens*(g.k+g.v) + e*n*g.out
	fused := op.Fused && op.Rope // v is a slice that keeps the whole projection (Phi-3)
	switch g.by {
	case flashKernel:
		saved += 4*op.Heads*n + seeds(s)*kernelCalls(op, s)
		if fused {
			// The rotated q is laid out by heads, and so is flash's output,
			// which .contiguous() then copies.
			saved += e*n*(g.q+g.k) + e*n*g.out
		}
	case efficientKernel:
		// attention_backward.cu: log-sum-exp in rows of a multiple of 32.
		padded := (s.Length + 31) / 32 * 32
		saved += 4*op.Heads*n/max(1, s.Length)*padded + 2*512 + g.masked*e
		if fused {
			saved += e * n * (g.q + g.k)
		}
	case scoresInMemory:
		saved += g.repeated * e
		saved += g.scores * scoreBytes(op, s)
		if op.SoftCap {
			saved += g.scores * e // tanh's output (modeling_gemma2.py, eager_attention_forward)
		}
		if fused && s.Batch == 1 {
			// With more sequences bmm reads a contiguous copy of the slice.
			saved += e * n * (g.q + g.k)
		}
	}
	return saved
}

// scoreBytes is what is kept an element of the score matrix: softmax's fp32
// result, and its cast that multiplies v (modeling_llama.py,
// eager_attention_forward; _scaled_dot_product_attention_math, where both are
// one). GPT-2's softmax runs in the type of the scores, fp32 under autocast
// (modeling_gpt2.py).
func scoreBytes(op modelgraph.Attention, s *Shape) int64 {
	result, cast := scoreTypes(op, s)
	return result + cast
}

// scoreTypes are the sizes of an element of softmax's result and of its cast,
// 0 where the result itself multiplies v.
func scoreTypes(op modelgraph.Attention, s *Shape) (result, cast int64) {
	e := s.e()
	if op.Fused && !op.Rope && !op.Eager && !s.Precision.Mixed() || e == 4 {
		return e, 0
	}
	return 4, e
}

// kernelForward is what the kernel holds at most in forward above what it
// keeps.
func kernelForward(op modelgraph.Attention, g *geo, s *Shape) int64 {
	if g.by != scoresInMemory {
		return 0
	}
	// softmax reads 4 bytes an element beside what it makes; in 16 bits the
	// scores before the cast are there too.
	if scoreBytes(op, s) == 4+s.e() && !s.Precision.Mixed() {
		return 4 * g.scores
	}
	return (8 - scoreBytes(op, s)) * g.scores
}

// kernelBackward is what backward of the kernel holds above what is saved:
// gradients of out, q, k and v, and the kernel's own.
func kernelBackward(op modelgraph.Attention, g *geo, s *Shape) int64 {
	e, n := s.e(), s.Tokens
	back := e*n*(g.out+g.q) + e*g.kvTokens*(g.k+g.v)
	switch g.by {
	case flashKernel:
		// An fp32 accumulator of dq, the rows' dot products, and expanded dk
		// and dv under grouped queries (flash_api.cpp, mha_bwd).
		back += 4*n*g.q + 4*op.Heads*n
		if op.KVHeads < op.Heads {
			back += 2 * e * n * g.q
		}
	case efficientKernel:
		back += 4*op.Heads*n + g.masked*e
		if e < 4 {
			back += 4 * n * g.q
		}
	case scoresInMemory:
		// softmax's backward: the gradient of its result, their product, and
		// the gradient of its input (SoftMax.cu, softmax_backward_cuda_out),
		// beside v's. The cast that multiplied v, v, and what the output's
		// projection kept are gone.
		result, cast := scoreTypes(op, s)
		back = (3*result-cast)*g.scores - e*n*g.out - s.casts(0, 0, op.Dim*g.out)
	}
	return back
}
