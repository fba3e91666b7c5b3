package diffusers

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// unetSizes are the sizes of a UNet's blocks, from the outermost to the innermost.
type unetSizes struct {
	widths, layers, depth, heads, cross []int64
	depthUp                             []int64 // of the way up, outermost last
	crossOnly                           []bool
	time                                int64
	linear                              bool
}

// unet is UNet2DConditionModel (unet_2d_condition.py).
func unet(cfg *config, root module) {
	sizes := unetSizesOf(cfg)
	down := cfg.kinds("down_block_types", "DownBlock2D", "CrossAttnDownBlock2D")
	up := cfg.kinds("up_block_types", "UpBlock2D", "CrossAttnUpBlock2D")
	if len(up) != len(down) {
		cfg.fail("up_block_types", "%d blocks up and %d down: diffusers wants as many", len(up), len(down))
	}
	if cfg.fault != nil {
		return
	}
	side := cfg.size("conv_in_kernel")
	root.conv("conv_in", cfg.size("in_channels"), sizes.widths[0], side, side)
	embed := root.in("time_embedding")
	embed.linear("linear_1", sizes.widths[0], sizes.time, true)
	if !cfg.null("time_cond_proj_dim") {
		embed.linear("cond_proj", cfg.size("time_cond_proj_dim"), sizes.widths[0], false)
	}
	embed.linear("linear_2", sizes.time, sizes.time, true)
	if !cfg.null("addition_embed_type") {
		root.timestep("add_embedding", cfg.size("projection_class_embeddings_input_dim"), sizes.time)
	}
	last := len(down) - 1
	in := sizes.widths[0]
	for i, kind := range down {
		sizes.downBlock(root.in("down_blocks").at(i), i, in, kind == "CrossAttnDownBlock2D", i < last)
		in = sizes.widths[i]
	}
	for i, kind := range up {
		sizes.upBlock(root.in("up_blocks").block(i), i, kind == "CrossAttnUpBlock2D")
	}
	if !cfg.null("mid_block_type") {
		middle, width := root.in("mid_block"), sizes.widths[last]
		sizes.crossTransformer(middle.in("attentions.0"), width, sizes.heads[last], sizes.cross[last], sizes.depth[last], false)
		middle.resnet(0, width, width, sizes.time)
		middle.resnet(1, width, width, sizes.time)
	}
	if !cfg.null("norm_num_groups") {
		root.norm("conv_norm_out", sizes.widths[0], modelgraph.LayerNorm, true)
	}
	side = cfg.size("conv_out_kernel")
	root.conv("conv_out", sizes.widths[0], cfg.size("out_channels"), side, side)
}

// unetSizesOf reads the sizes. It fails for fields that would change the modules in another way.
func unetSizesOf(cfg *config) *unetSizes {
	for field, values := range map[string][]string{
		"class_embed_type": {"null"}, "num_class_embeds": {"null"}, "addition_embed_type": {"null", `"text_time"`},
		"encoder_hid_dim": {"null"}, "encoder_hid_dim_type": {"null"}, "time_embedding_type": {`"positional"`},
		"dual_cross_attention": {"false"}, "resnet_time_scale_shift": {`"default"`}, "class_embeddings_concat": {"false"},
		"cross_attention_norm": {"null"}, "attention_type": {`"default"`}, "mid_block_type": {"null", `"UNetMidBlock2DCrossAttn"`},
	} {
		cfg.only(field, values...)
	}
	widths := cfg.sizes("block_out_channels")
	blocks := len(widths)
	sizes := &unetSizes{
		widths: widths, layers: cfg.sizesFor("layers_per_block", blocks), depth: cfg.sizesFor("transformer_layers_per_block", blocks),
		cross: cfg.sizesFor("cross_attention_dim", blocks), crossOnly: cfg.flags("only_cross_attention", blocks),
		time: cfg.sizeOr("time_embedding_dim", 4*widths[0]), linear: cfg.flag("use_linear_projection"),
	}
	sizes.heads = cfg.sizesFor("attention_head_dim", blocks) // the number of heads, in spite of the name
	if !cfg.null("num_attention_heads") {
		sizes.heads = cfg.sizesFor("num_attention_heads", blocks)
	}
	sizes.depthUp = slices.Clone(sizes.depth)
	if !cfg.null("reverse_transformer_layers_per_block") {
		sizes.depthUp = cfg.sizesFor("reverse_transformer_layers_per_block", blocks)
		slices.Reverse(sizes.depthUp)
	}
	cfg.forBlocks("block_out_channels", widths, len(cfg.words("down_block_types")))
	for i, width := range widths {
		if sizes.heads[i] > width {
			cfg.fail("attention_head_dim", "%d heads are more than the %d channels of block %d", sizes.heads[i], width, i)
		}
	}
	return sizes
}

// downBlock is DownBlock2D or CrossAttnDownBlock2D (unet_2d_blocks.py).
func (sizes *unetSizes) downBlock(block module, index int, in int64, cross, sampled bool) {
	out := sizes.widths[index]
	if cross {
		for j := range int(sizes.layers[index]) {
			sizes.crossTransformer(block.in("attentions").at(j), out, sizes.heads[index], sizes.cross[index], sizes.depth[index], sizes.crossOnly[index])
		}
	}
	for j := range int(sizes.layers[index]) {
		block.resnet(j, in, out, sizes.time)
		in = out
	}
	if sampled {
		block.conv("downsamplers.0.conv", out, out, 3, 3)
	}
}

// upBlock is UpBlock2D or CrossAttnUpBlock2D, whose residual blocks read the
// outputs of the way down at its level.
func (sizes *unetSizes) upBlock(block module, index int, cross bool) {
	level := len(sizes.widths) - 1 - index // the block of the way down at its level
	out, skipped, before := sizes.widths[level], sizes.widths[max(0, level-1)], sizes.widths[min(level+1, len(sizes.widths)-1)]
	layers := int(sizes.layers[level]) + 1
	if cross {
		for j := range layers {
			sizes.crossTransformer(block.in("attentions").at(j), out, sizes.heads[level], sizes.cross[level], sizes.depthUp[level], sizes.crossOnly[level])
		}
	}
	for j := range layers {
		skip := out
		if j == layers-1 {
			skip = skipped
		}
		block.resnet(j, before+skip, out, sizes.time)
		before = out
	}
	if level > 0 {
		block.conv("upsamplers.0.conv", out, out, 3, 3)
	}
}

// crossTransformer is Transformer2DModel of BasicTransformerBlocks (transformer_2d.py,
// attention.py): self-attention, attention to the text, and a gated feed-forward.
func (sizes *unetSizes) crossTransformer(mod module, width, count, text, depth int64, crossOnly bool) {
	inner := width / count * count
	attn := heads{dim: width, count: count, width: width / count}
	projection := func(name string, in, out int64) {
		if sizes.linear {
			mod.linear(name, in, out, true)
		} else {
			mod.conv(name, in, out, 1, 1)
		}
	}
	attention := func(block module, name string, from int64) {
		op := attn.op(false)
		op.Dim, op.Cross = inner, from != inner || name == "attn2"
		block.add(name, op, matrices(inner, inner, false, "to_q"), matrices(from, inner, false, "to_k", "to_v"), matrices(inner, inner, true, "to_out.0"))
	}
	mod.norm("norm", width, modelgraph.LayerNorm, true)
	projection("proj_in", width, inner)
	for i := range int(depth) {
		block := mod.in("transformer_blocks").block(i)
		first := inner
		if crossOnly {
			first = text
		}
		block.norm("norm1", inner, modelgraph.LayerNorm, true)
		attention(block, "attn1", first)
		block.norm("norm2", inner, modelgraph.LayerNorm, true)
		attention(block, "attn2", text)
		block.norm("norm3", inner, modelgraph.LayerNorm, true)
		block.feedForward("ff", inner, 4*inner, inner, "geglu")
	}
	projection("proj_out", inner, width)
}
