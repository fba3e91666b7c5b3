package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// philox is the seed and the offset that one call of the flash kernel keeps,
// a block of the allocator each (attention.cu, _flash_attention_forward).
const philox = 2 * 512

// seeds are those of one call: the flash-attn package keeps both in one tensor
// (flash_attn_interface.py, FlashAttnFunc: rng_state).
func seeds(s *Shape) int64 {
	if s.Attention == costmodel.FlashAttention {
		return philox / 2
	}
	return philox
}

// kernelCalls is how many times the attention kernel is called: once, or where
// images lie packed, for each window or image (modeling_qwen2_5_vl.py
// Qwen2_5_VLVisionAttention.forward: torch.split by cu_seqlens; a window at
// the image's edge may be smaller, and counts in the mean).
func kernelCalls(op modelgraph.Attention, s *Shape) int64 {
	if !op.Packed || s.Attention == costmodel.FlashAttention { // which takes cu_seqlens
		return 1
	}
	chunk := s.Length
	if op.Window > 0 {
		chunk = min(chunk, op.Window)
	}
	return max(1, (s.Tokens+chunk-1)/max(1, chunk))
}

// normRows is how many values of 1/σ the norms of q and k keep a token.
func normRows(op modelgraph.Attention) int64 {
	if op.QKNormWhole {
		return 2
	}
	return op.Heads + op.KVHeads
}

// scattered is what putting image features into the embeddings takes beside
// them: the result, and per element an index of 8 bytes and a byte of the mask
// (IndexKernel.cu: launch_masked_scatter_kernel). Backward keeps the mask as
// it was, a byte a token.
func scattered(dim int64, s *Shape) int64 {
	return (s.r() + 8 + 1) * dim * s.Tokens
}

// conv is a convolution: its input is kept for the weight's gradient. Patches
// do not overlap, so that a token's input is its whole patch.
func conv(op modelgraph.Conv, s *Shape) Cost {
	n := s.Tokens * max(1, op.TokenRatio)
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	return dense(op.In*max(1, op.Stride)*n, op.Out*n, act, 2*float64(n)*float64(op.In)*float64(op.Kernel)*float64(op.Out), s)
}

// rotary makes cos and sin [rows, head width] once a forward. Where layers
// get no copies of their own, they are kept here, once.
func rotary(op modelgraph.Rotary, s *Shape) Cost {
	rows, element := s.Length, s.r()
	if op.Rows || op.Packed {
		rows = s.Tokens
	}
	if op.Packed {
		element = 4
	}
	size := rows * op.HeadDim
	c := Cost{Known: true, Output: 2 * element * size, FLOPs: 4 * float64(size)}
	c.Step.Forward = (3*4 + 2*element) * size
	if op.Packed || !s.RotaryCopies {
		c.Step.Saved, c.Step.UntilBodyEnd = c.Output, c.Output
	}
	return c
}
