package hf

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// maskDecoder is SamMaskDecoder: tokens for masks and scores attend to the image, and the image to
// them. Masks are made of their tokens and of the upscaled image tokens.
func (model *sam) maskDecoder(modules *builder, path string) {
	cfg := model.masks
	hidden, masks := cfg.pos(256, "hidden_size"), cfg.pos(3, "num_multimask_outputs")+1
	if hidden%8 != 0 {
		cfg.fail("hidden_size", "%d is no multiple of 8", hidden)
		return
	}
	modules.add(dot(path, "iou_token"), modelgraph.Parameter{}, nil, tensor("weight", 1, hidden))
	tokens := modules.add(dot(path, "mask_tokens"), modelgraph.Parameter{}, nil, tensor("weight", masks, hidden)).Name
	both := dot(path, "transformer")
	image := model.image
	modules.hidden = tokens
	for i := range cfg.count(2, "num_hidden_layers") {
		name := indexed(dot(both, "layers"), i)
		modules.unit(name, func() { image = model.twoWay(modules, name, hidden, image) })
	}
	last := dot(both, "final_attn_token_to_image")
	modules.unit(last, func() {
		model.attend(modules, last, hidden, cfg.pos(2, "attention_downsample_rate"), modules.hidden, image)
	})
	queries := addLayerNorm(modules, dot(both, "layer_norm_final_attn"), hidden, last)
	finer := func(name string, in, out, times int64, input string) string {
		stream := fixedStream(model.grid.count() * times)
		modules.on(stream, func() {
			modules.add(dot(path, name), modelgraph.Conv{In: in, Out: out, Kernel: 4}, []string{input}, tensor("weight", in, out, 2, 2), tensor("bias", out))
		})
		return dot(path, name)
	}
	norm := dot(path, "upscale_layer_norm")
	conv1 := finer("upscale_conv1", hidden, hidden/4, 4, image)
	pixels := finer("upscale_conv2", hidden/4, hidden/8, 16, norm)
	modules.on(fixedStream(4*model.grid.count()), func() { addLayerNorm(modules, norm, hidden/4, conv1) })
	modules.on(fixedStream(1), func() {
		for i := range masks {
			model.feedForward(modules, indexed(dot(path, "output_hypernetworks_mlps"), i), []int64{hidden, hidden, hidden / 8}, 3, queries, pixels)
		}
		model.feedForward(modules, dot(path, "iou_prediction_head"), []int64{hidden, cfg.pos(256, "iou_head_hidden_dim"), masks}, cfg.count(3, "iou_head_depth"), queries, "")
	})
}

// attend is SamAttention: the heads' total width is a fraction of the model's. Attention without
// keys from the image is self-attention.
func (model *sam) attend(modules *builder, name string, hidden, rate int64, queries, keys string) {
	heads := model.masks.pos(8, "num_attention_heads")
	inner := hidden / rate
	if inner < 1 || inner%heads != 0 {
		model.masks.fail("num_attention_heads", "%d heads do not divide the width %d", heads, inner)
		return
	}
	op := modelgraph.Attention{Dim: hidden, Heads: heads, KVHeads: heads, HeadDim: inner / heads, Bidirectional: true, Cross: keys != ""}
	modules.add(name, op, []string{queries, queries, keys}, join(
		linearParams("q_proj", hidden, inner, true), linearParams("k_proj", hidden, inner, true),
		linearParams("v_proj", hidden, inner, true), linearParams("out_proj", inner, hidden, true))...)
}

// twoWay is SamTwoWayAttentionBlock, and gives the layer of the image's tokens after it.
func (model *sam) twoWay(modules *builder, name string, hidden int64, image string) string {
	cfg := model.masks
	const rate = 2 // attention_downsample_rate is ignored
	norm := func(module, input string) string { return addLayerNorm(modules, dot(name, module), hidden, input) }
	model.attend(modules, dot(name, "self_attn"), hidden, 1, modules.hidden, "")
	queries := norm("layer_norm1", dot(name, "self_attn"))
	model.attend(modules, dot(name, "cross_attn_token_to_image"), hidden, rate, queries, image)
	queries = norm("layer_norm2", dot(name, "cross_attn_token_to_image"))
	mlp := feedForward{dim: hidden, hidden: cfg.pos(2048, "mlp_dim"), activation: cfg.str("relu", "hidden_act"), bias: true, up: "lin1", down: "lin2"}.part()
	modules.add(dot(name, "mlp"), mlp.op, []string{queries, queries}, mlp.params...)
	modules.hidden = norm("layer_norm3", dot(name, "mlp"))
	back := dot(name, "cross_attn_image_to_token")
	modules.on(fixedStream(model.grid.count()), func() {
		norm("layer_norm4", back)
		model.attend(modules, back, hidden, rate, image, modules.hidden)
	})
	return dot(name, "layer_norm4")
}

// feedForward is SamFeedForward: the first and the last matrix are registered before the others.
func (model *sam) feedForward(modules *builder, path string, widths []int64, depth int64, input, residual string) {
	if depth < 2 {
		model.masks.fail("iou_head_depth", "%d matrices are fewer than the first and the last", depth)
		return
	}
	modules.unit(path, func() {
		in := addLinear(modules, dot(path, "proj_in"), widths[0], widths[1], "relu", input)
		out := dot(path, "proj_out")
		between := in
		if depth > 2 {
			between = indexed(dot(path, "layers"), depth-3)
		}
		inputs := []string{between}
		if residual != "" {
			inputs = append(inputs, residual)
		}
		modules.add(out, modelgraph.Linear{In: widths[1], Out: widths[2]}, inputs, linearParams("", widths[1], widths[2], true)...)
		for i := range depth - 2 {
			in = addLinear(modules, indexed(dot(path, "layers"), i), widths[1], widths[1], "relu", in)
		}
	})
}
