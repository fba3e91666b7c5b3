package diffusers

import "github.com/devmap-dev/devmap/modelgraph"

// heads are the dimensions of a transformer's attention.
type heads struct{ dim, count, width int64 }

func headsOf(cfg *config) heads {
	count, width := cfg.size("num_attention_heads"), cfg.size("attention_head_dim")
	return heads{dim: count * width, count: count, width: width}
}

// op returns attention among the tokens. joint: a second stream's tokens, or another projection,
// are part of it.
func (attn heads) op(joint bool) modelgraph.Attention {
	return modelgraph.Attention{Dim: attn.dim, Heads: attn.count, KVHeads: attn.count, HeadDim: attn.width, Bidirectional: true, Joint: joint}
}

// timestep is TimestepEmbedding (embeddings.py) of 256 sines, or of a pooled
// vector of another width.
func (mod module) timestep(name string, in, dim int64) {
	embedder := mod.in(name)
	embedder.linear("linear_1", in, dim, true)
	embedder.linear("linear_2", dim, dim, true)
}

// sines is the width of the timestep's embedding before its projection
// (embeddings.py: CombinedTimestepTextProjEmbeddings).
const sines = 256

// flux is FluxTransformer2DModel (transformer_flux.py).
func flux(cfg *config, root module) {
	attn, context := headsOf(cfg), cfg.size("joint_attention_dim")
	in := cfg.size("in_channels")
	patch, out := cfg.size("patch_size"), cfg.sizeOr("out_channels", in)
	embed := root.in("time_text_embed")
	embed.unit = embed.path // its forward adds what its parts made: CombinedTimestep…Embeddings
	embed.timestep("timestep_embedder", sines, attn.dim)
	if cfg.flag("guidance_embeds") {
		embed.timestep("guidance_embedder", sines, attn.dim)
	}
	embed.timestep("text_embedder", cfg.size("pooled_projection_dim"), attn.dim)
	root.linear("context_embedder", context, attn.dim, true)
	root.linear("x_embedder", in, attn.dim, true)
	for i := range cfg.count("num_layers") {
		block := root.in("transformer_blocks").block(i)
		block.linear("norm1.linear", attn.dim, 6*attn.dim, true)
		block.linear("norm1_context.linear", attn.dim, 6*attn.dim, true)
		block.add("attn", attn.op(true), vectors(attn.width, "norm_q", "norm_k"), matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v", "to_out.0"),
			vectors(attn.width, "norm_added_q", "norm_added_k"), matrices(attn.dim, attn.dim, true, "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"))
		block.feedForward("ff", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
		block.feedForward("ff_context", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
	}
	for i := range cfg.count("num_single_layers") {
		block := root.in("single_transformer_blocks").block(i)
		block.linear("norm.linear", attn.dim, 3*attn.dim, true)
		block.linear("proj_mlp", attn.dim, 4*attn.dim, true)
		block.linear("proj_out", 5*attn.dim, attn.dim, true)
		block.add("attn", attn.op(true), vectors(attn.width, "norm_q", "norm_k"), matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v"))
	}
	root.linear("norm_out.linear", attn.dim, 2*attn.dim, true)
	root.linear("proj_out", attn.dim, patch*patch*out, true)
}

// stableDiffusion3 is SD3Transformer2DModel (transformer_sd3.py), of 3 and 3.5.
func stableDiffusion3(cfg *config, root module) {
	attn, in := headsOf(cfg), cfg.size("in_channels")
	patch, out, places := cfg.size("patch_size"), cfg.sizeOr("out_channels", in), cfg.size("pos_embed_max_size")
	caption := cfg.size("caption_projection_dim")
	if caption != attn.dim {
		cfg.fail("caption_projection_dim", "%d is not num_attention_heads × attention_head_dim = %d, which the blocks add it to", caption, attn.dim)
	}
	cfg.only("qk_norm", "null", `"rms_norm"`)
	normed := !cfg.null("qk_norm")
	dual := make(map[int64]bool)
	for i, item := range cfg.items("dual_attention_layers") {
		if string(item) == "0" {
			dual[0] = true
			continue
		}
		dual[cfg.sizeOf("dual_attention_layers["+string(rune('0'+i%10))+"]", item)] = true
	}
	root.conv("pos_embed.proj", in, attn.dim, patch, patch)
	root.add("pos_embed", modelgraph.Opaque{}).Buffers = []modelgraph.Tensor{{Name: "pos_embed", Shape: []int64{1, places * places, attn.dim}}}
	embed := root.in("time_text_embed")
	embed.unit = embed.path // its forward adds what its parts made: CombinedTimestep…Embeddings
	embed.timestep("timestep_embedder", sines, attn.dim)
	embed.timestep("text_embedder", cfg.size("pooled_projection_dim"), attn.dim)
	root.linear("context_embedder", cfg.size("joint_attention_dim"), caption, true)
	layers := cfg.count("num_layers")
	for i := range layers {
		jointBlock(root.in("transformer_blocks").block(i), attn, normed, dual[int64(i)], i == layers-1)
	}
	root.linear("norm_out.linear", attn.dim, 2*attn.dim, true)
	root.linear("proj_out", attn.dim, patch*patch*out, true)
}

// jointBlock is JointTransformerBlock (attention.py). The last one drops the text's stream.
func jointBlock(block module, attn heads, normed, dual, last bool) {
	norms, context := int64(6), int64(6)
	if dual { // SD35AdaLayerNormZeroX
		norms = 9
	}
	if last { // AdaLayerNormContinuous
		context = 2
	}
	block.linear("norm1.linear", attn.dim, norms*attn.dim, true)
	block.linear("norm1_context.linear", attn.dim, context*attn.dim, true)
	block.add("attn", attn.op(true), joined(attn, normed, last)...)
	if dual {
		second := [][]modelgraph.Tensor{matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v", "to_out.0")}
		if normed {
			second = append([][]modelgraph.Tensor{vectors(attn.width, "norm_q", "norm_k")}, second...)
		}
		block.add("attn2", attn.op(false), second...)
	}
	block.feedForward("ff", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
	if !last {
		block.feedForward("ff_context", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
	}
}

// joined returns the tensors of diffusers' Attention with added projections
// (attention_processor.py: Attention.__init__, in its order).
func joined(attn heads, normed, last bool) [][]modelgraph.Tensor {
	all := [][]modelgraph.Tensor{
		matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v", "add_k_proj", "add_v_proj", "add_q_proj", "to_out.0"),
	}
	if !last {
		all = append(all, matrices(attn.dim, attn.dim, true, "to_add_out"))
	}
	if normed {
		all = append([][]modelgraph.Tensor{vectors(attn.width, "norm_q", "norm_k")}, all...)
		all = append(all, vectors(attn.width, "norm_added_q", "norm_added_k"))
	}
	return all
}

// qwenImage is QwenImageTransformer2DModel (transformer_qwenimage.py).
func qwenImage(cfg *config, root module) {
	attn, context := headsOf(cfg), cfg.size("joint_attention_dim")
	patch := cfg.size("patch_size")
	for _, field := range []string{"use_additional_t_cond", "use_layer3d_rope"} {
		cfg.only(field, "false")
	}
	root.in("time_text_embed").timestep("timestep_embedder", sines, attn.dim)
	root.norm("txt_norm", context, modelgraph.RMSNorm, false)
	root.linear("img_in", cfg.size("in_channels"), attn.dim, true)
	root.linear("txt_in", context, attn.dim, true)
	for i := range cfg.count("num_layers") {
		block := root.in("transformer_blocks").block(i)
		block.linear("img_mod.1", attn.dim, 6*attn.dim, true)
		block.add("attn", attn.op(true), joined(attn, true, false)...)
		block.feedForward("img_mlp", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
		block.linear("txt_mod.1", attn.dim, 6*attn.dim, true)
		block.feedForward("txt_mlp", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
	}
	root.linear("norm_out.linear", attn.dim, 2*attn.dim, true)
	root.linear("proj_out", attn.dim, patch*patch*cfg.sizeOr("out_channels", cfg.size("in_channels")), true)
}
