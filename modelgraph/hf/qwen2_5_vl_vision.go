package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// qwenImagePixels is an image's default size. The tower takes images of any size. By default the
// processor shrinks them to at most 28·28·1280 pixels (image_processing_qwen2_vl.py, longest_edge):
// 1 megapixel, 5120 patches, 1280 tokens.
const qwenImagePixels = 28 * 28 * 1280

// qwenTower is Qwen2.5-VL's vision tower (modeling_qwen2_5_vl.py:
// Qwen2_5_VisionTransformerPretrainedModel).
type qwenTower struct {
	dim, channels, out int64
	patch, frames      int64 // a patch in pixels and frames
	merge              int64 // patches along a token's side
	merged, tokens     int64 // patches joined in a token; tokens an image
	wide               int64 // channels of a token before the merger
	rotaryDim          int64
	stack              *visionStack
	merger             mergerNames
	// Qwen3-VL's also has a patch bias, a table of positions, and mergers of some blocks' outputs.
	patchBias bool
	positions int64
	deep      []int64
}

// mergerNames are the modules that make tokens of patches.
type mergerNames struct{ norm, in, act, out string }

// qwenVision reads a Qwen2_5_VLVisionConfig. The framework ignores the in_chans of published
// configs.
func qwenVision(cfg *config) *qwenTower {
	cfg.kind("qwen2_5_vl", "qwen2_5_vl_vision")
	hidden := cfg.pos(3584, "hidden_size")
	merge := side(cfg, 2, "spatial_merge_size")
	tower := &qwenTower{
		dim: hidden, channels: cfg.pos(3, "in_channels"), out: cfg.pos(3584, "out_hidden_size"),
		patch: side(cfg, 14, "patch_size"), frames: side(cfg, 2, "temporal_patch_size"), merge: merge, merged: merge * merge,
	}
	token := tower.patch * merge // a token's side in pixels
	tower.wide = cfg.product("spatial_merge_size", tower.merged, hidden)
	tower.tokens = max(1, qwenImagePixels/token/token)
	op := visionAttention(cfg, hidden, 16, "num_heads")
	op.Fused, op.Rope, op.Packed = true, true, true
	tower.rotaryDim = cfg.orNull(0, op.HeadDim, "head_dim")
	mlp := gatedMLP(cfg, hidden, 3420, "silu")
	mlp.bias = true
	tower.stack = &visionStack{
		dim: hidden, layers: cfg.depth(32), norm: modelgraph.RMSNorm,
		attention: qwenWindowed(cfg, op, token, tower.merged), mlp: mlp.part(),
		attnNorm: "norm1", attn: "attn", mlpNorm: "norm2", mlpName: "mlp",
		order: []string{"norm1", "norm2", "attn", "mlp"},
	}
	tower.merger = mergerNames{norm: "merger.ln_q", in: "merger.mlp.0", act: "merger.mlp.1", out: "merger.mlp.2"}
	return tower
}

// qwenWindowed is the attention per block: square windows of window_size pixels, except the blocks
// of fullatt_block_indexes (vision_utils.py: get_vision_window_index). token is a token's side.
func qwenWindowed(cfg *config, op modelgraph.Attention, token, merged int64) func(int64) part {
	full := []int64{7, 15, 23, 31}
	if cfg.has("fullatt_block_indexes") {
		full = cfg.dims("fullatt_block_indexes")
	}
	window := side(cfg, 112, "window_size") / token
	if window == 0 {
		cfg.fail("window_size", "no token of %d × %d pixels (patch_size × spatial_merge_size) fits into it", token, token)
	}
	params := join(linearParams("qkv", op.Dim, 3*op.Dim, true), linearParams("proj", op.Dim, op.Dim, true))
	return func(i int64) part {
		a := op
		if !slices.Contains(full, i) {
			a.Window = min(window*window, maxDim/merged) * merged
		}
		return part{op: a, params: params}
	}
}

// pixels is the convolution's input a patch and channel.
func (tower *qwenTower) pixels() int64 { return tower.frames * tower.patch * tower.patch }

// build adds the tower at path and names its last layer. The blocks are a no-split class.
func (tower *qwenTower) build(modules *builder, path string) string {
	token := tower.patch * tower.merge
	anySize := func(tokens, side int64) modelgraph.Stream {
		stream := imageStream(tokens)
		stream.Side, stream.Multiple = side, token
		return stream
	}
	var states []string
	modules.on(anySize(tower.tokens*tower.merged, tower.patch), func() {
		weights := []modelgraph.Tensor{tensor("weight", tower.dim, tower.channels, tower.frames, tower.patch, tower.patch)}
		if tower.patchBias {
			weights = append(weights, tensor("bias", tower.dim))
		}
		modules.hidden = modules.add(dot(path, "patch_embed.proj"),
			modelgraph.Conv{In: tower.channels, Out: tower.dim, Kernel: tower.pixels(), Stride: tower.pixels()}, nil, weights...).Name
		if tower.positions > 0 { // a row a place of a square, between which images of other sizes interpolate
			modules.hidden = addTable(modules, dot(path, "pos_embed"), tower.positions, tower.dim, modules.hidden)
		}
		modules.add(dot(path, "rotary_pos_emb"), modelgraph.Rotary{HeadDim: tower.rotaryDim, Packed: true}, nil).Buffers = axialRotary(tower.rotaryDim)
		states = tower.stack.build(modules, dot(path, "blocks"), true)
		norm := dot(path, tower.merger.norm)
		modules.add(norm, modelgraph.Norm{Dim: tower.dim, Style: tower.stack.norm}, []string{modules.hidden}, styleParams(tower.stack.norm, tower.dim)...)
		modules.hidden = norm
	})
	modules.on(anySize(tower.tokens, token), func() {
		modules.hidden = addLinear(modules, dot(path, tower.merger.in), tower.wide, tower.wide, "gelu", modules.hidden)
		modules.empty(dot(path, tower.merger.act)) // GELU
		modules.hidden = addLinear(modules, dot(path, tower.merger.out), tower.wide, tower.out, "", modules.hidden)
		for i, name := range tower.deepNames(path) {
			base := paths.Parent(name)
			norm := addLayerNorm(modules, dot(base, "norm"), tower.wide, states[min(tower.deep[i]+1, int64(len(states)-1))])
			wide := addLinear(modules, dot(base, "linear_fc1"), tower.wide, tower.wide, "gelu", norm)
			modules.empty(dot(base, "act_fn"))
			addLinear(modules, name, tower.wide, tower.out, "", wide)
		}
	})
	return modules.hidden
}

// deepNames are the layers that give the features of single blocks.
func (tower *qwenTower) deepNames(path string) []string {
	var names []string
	for i := range tower.deep {
		names = append(names, dot(indexed(dot(path, "deepstack_merger_list"), int64(i)), "linear_fc2"))
	}
	return names
}

// axialRotary has one frequency for two elements of half a head: rows rotate one half, columns the
// other (Qwen2_5_VLVisionRotaryEmbedding).
func axialRotary(headDim int64) []modelgraph.Tensor {
	count := (headDim/2 + 1) / 2
	return []modelgraph.Tensor{
		buffer("inv_freq", modelgraph.F32, count),
		buffer("original_inv_freq", modelgraph.F32, count),
	}
}
