package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// qwenImagePixels is the size of an image where the workload gives none. The
// tower takes images of any size; the processor shrinks them to at most
// 28·28·1280 pixels unless told otherwise (image_processing_qwen2_vl.py,
// longest_edge): 1 megapixel, 5120 patches, 1280 tokens.
const qwenImagePixels = 28 * 28 * 1280

// qwenTower is the vision tower of Qwen2.5-VL (modeling_qwen2_5_vl.py:
// Qwen2_5_VisionTransformerPretrainedModel).
type qwenTower struct {
	dim, channels, out int64
	patch, frames      int64 // a patch in pixels and frames
	merge              int64 // patches along a token's side
	merged, tokens     int64 // patches joined in a token; tokens an image
	wide               int64 // channels of a token before the merger
	rotaryDim          int64
	stack              *visionStack
}

// qwenVision reads a Qwen2_5_VLVisionConfig. in_chans, which published
// configs have, is not read by the framework.
func qwenVision(c *config) *qwenTower {
	c.kind("qwen2_5_vl", "qwen2_5_vl_vision")
	h := c.pos(3584, "hidden_size")
	merge := side(c, 2, "spatial_merge_size")
	t := &qwenTower{
		dim: h, channels: c.pos(3, "in_channels"), out: c.pos(3584, "out_hidden_size"),
		patch: side(c, 14, "patch_size"), frames: side(c, 2, "temporal_patch_size"), merge: merge, merged: merge * merge,
	}
	token := t.patch * merge // a token's side in pixels
	t.wide = c.product("spatial_merge_size", t.merged, h)
	t.tokens = max(1, qwenImagePixels/token/token)
	op := visionAttention(c, h, 16, "num_heads")
	op.Fused, op.Rope, op.Packed = true, true, true
	t.rotaryDim = c.orNull(0, op.HeadDim, "head_dim")
	mlp := gatedMLP(c, h, 3420, "silu")
	mlp.bias = true
	t.stack = &visionStack{
		dim: h, layers: c.count(32, "depth"), norm: modelgraph.RMSNorm,
		attention: qwenWindowed(c, op, token, t.merged), mlp: mlp.part(),
		attnNorm: "norm1", attn: "attn", mlpNorm: "norm2", mlpName: "mlp",
		order: []string{"norm1", "norm2", "attn", "mlp"},
	}
	return t
}

// qwenWindowed is the attention per block: within square windows of
// window_size pixels, but for the blocks of fullatt_block_indexes
// (vision_utils.py: get_vision_window_index). token is a token's side.
func qwenWindowed(c *config, op modelgraph.Attention, token, merged int64) func(int64) part {
	full := []int64{7, 15, 23, 31}
	if c.has("fullatt_block_indexes") {
		full = c.dims("fullatt_block_indexes")
	}
	window := side(c, 112, "window_size") / token
	if window == 0 {
		c.fail("window_size", "no token of %d × %d pixels (patch_size × spatial_merge_size) fits into it", token, token)
	}
	params := join(linear("qkv", op.Dim, 3*op.Dim, true), linear("proj", op.Dim, op.Dim, true))
	return func(i int64) part {
		a := op
		if !slices.Contains(full, i) {
			a.Window = min(window*window, maxDim/merged) * merged
		}
		return part{op: a, params: params}
	}
}

// pixels is what the convolution reads a patch and channel.
func (t *qwenTower) pixels() int64 { return t.frames * t.patch * t.patch }

// build adds the tower at path and names its last layer. The blocks are a
// no-split class.
func (t *qwenTower) build(b *builder, path string) string {
	token := t.patch * t.merge
	anySize := func(tokens, side int64) modelgraph.Stream {
		s := imageStream(tokens)
		s.Side, s.Multiple = side, token
		return s
	}
	b.on(anySize(t.tokens*t.merged, t.patch), func() {
		b.hidden = b.add(dot(path, "patch_embed.proj"),
			modelgraph.Conv{In: t.channels, Out: t.dim, Kernel: t.pixels(), Stride: t.pixels()}, nil,
			tensor("weight", t.dim, t.channels, t.frames, t.patch, t.patch)).Name
		b.add(dot(path, "rotary_pos_emb"), modelgraph.Rotary{HeadDim: t.rotaryDim, Packed: true}, nil).Buffers = axialRotary(t.rotaryDim)
		t.stack.build(b, dot(path, "blocks"), true)
		b.hidden = b.add(dot(path, "merger.ln_q"), modelgraph.Norm{Dim: t.dim, Style: modelgraph.RMSNorm},
			[]string{b.hidden}, tensor("weight", t.dim)).Name
	})
	b.on(anySize(t.tokens, token), func() {
		b.hidden = addLinear(b, dot(path, "merger.mlp.0"), t.wide, t.wide, "gelu", b.hidden)
		b.empty(dot(path, "merger.mlp.1")) // GELU
		b.hidden = addLinear(b, dot(path, "merger.mlp.2"), t.wide, t.out, "", b.hidden)
	})
	return b.hidden
}

// axialRotary is one frequency for every two numbers of a head's half: rows
// turn one half, columns the other (Qwen2_5_VLVisionRotaryEmbedding).
func axialRotary(headDim int64) []modelgraph.Tensor {
	n := (headDim/2 + 1) / 2
	return []modelgraph.Tensor{
		buffer("inv_freq", modelgraph.F32, n),
		buffer("original_inv_freq", modelgraph.F32, n),
	}
}
