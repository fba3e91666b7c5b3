package diffusers

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// wan is WanTransformer3DModel (transformer_wan.py), of Wan 2.1 and 2.2.
func wan(cfg *config, root module) {
	attn, in := headsOf(cfg), cfg.size("in_channels")
	hidden, freq, places := cfg.size("ffn_dim"), cfg.size("freq_dim"), cfg.size("rope_max_seq_len")
	patch := cfg.forBlocks("patch_size", cfg.sizes("patch_size"), 3)
	cfg.only("qk_norm", `"rms_norm_across_heads"`)
	added := cfg.sizeOr("added_kv_proj_dim", 0)
	root.parameter("scale_shift_table", 1, 2, attn.dim)
	root.conv("patch_embedding", in, attn.dim, patch...)
	root.add("rope", modelgraph.Opaque{}).Buffers = []modelgraph.Tensor{
		{Name: "freqs_cos", Shape: []int64{places, attn.width}, DType: modelgraph.F32},
		{Name: "freqs_sin", Shape: []int64{places, attn.width}, DType: modelgraph.F32},
	}
	embed := root.in("condition_embedder")
	embed.timestep("time_embedder", freq, attn.dim)
	embed.linear("time_proj", attn.dim, 6*attn.dim, true)
	embed.timestep("text_embedder", cfg.size("text_dim"), attn.dim)
	if !cfg.null("image_dim") {
		wanImages(cfg, embed.in("image_embedder"), cfg.size("image_dim"), attn.dim)
	}
	for i := range cfg.count("num_layers") {
		block := root.in("blocks").block(i)
		block.parameter("scale_shift_table", 1, 6, attn.dim)
		projections := [][]modelgraph.Tensor{matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v", "to_out.0"), vectors(attn.dim, "norm_q", "norm_k")}
		op := attn.op(false)
		op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true
		block.add("attn1", op, projections...)
		op.Cross = true
		if added > 0 {
			projections = append(projections, matrices(added, attn.dim, true, "add_k_proj", "add_v_proj"), vectors(attn.dim, "norm_added_k"))
		}
		block.add("attn2", op, projections...)
		if cfg.flag("cross_attn_norm") {
			block.norm("norm2", attn.dim, modelgraph.LayerNorm, true)
		}
		block.feedForward("ffn", attn.dim, hidden, attn.dim, "gelu-approximate")
	}
	root.linear("proj_out", attn.dim, cfg.sizeOr("out_channels", in)*patch[0]*patch[1]*patch[2], true)
}

// wanImages is WanImageEmbedding: features of the image with which a video begins.
func wanImages(cfg *config, embed module, width, dim int64) {
	if !cfg.null("pos_embed_seq_len") {
		embed.parameter("pos_embed", 1, cfg.size("pos_embed_seq_len"), width)
	}
	embed.norm("norm1", width, modelgraph.LayerNorm, true)
	embed.feedForward("ff", width, width, dim, "gelu")
	embed.norm("norm2", dim, modelgraph.LayerNorm, true)
}

// cogVideoX is CogVideoXTransformer3DModel (cogvideox_transformer_3d.py).
func cogVideoX(cfg *config, root module) {
	attn, in, patch := headsOf(cfg), cfg.size("in_channels"), cfg.size("patch_size")
	depth, affine, bias := cfg.sizeOr("patch_size_t", 0), cfg.flag("norm_elementwise_affine"), cfg.flag("attention_bias")
	time := cfg.size("time_embed_dim")
	out := cfg.sizeOr("out_channels", in) * patch * patch
	cfg.only("use_learned_positional_embeddings", "false", "true")
	if depth == 0 {
		root.convBias("patch_embed.proj", in, attn.dim, cfg.flag("patch_bias"), patch, patch)
	} else { // CogVideoX 1.5: patches of several frames
		root.linear("patch_embed.proj", in*patch*patch*depth, attn.dim, true)
		out *= depth
	}
	root.linear("patch_embed.text_proj", cfg.size("text_embed_dim"), attn.dim, true)
	if !cfg.flag("use_rotary_positional_embeddings") || cfg.flag("use_learned_positional_embeddings") {
		frames := (cfg.size("sample_frames")-1)/cfg.size("temporal_compression_ratio") + 1
		places := cfg.size("max_text_seq_length") + frames*(cfg.size("sample_height")/patch)*(cfg.size("sample_width")/patch)
		root.add("patch_embed", modelgraph.Opaque{}).Buffers = []modelgraph.Tensor{{Name: "pos_embedding", Shape: []int64{1, places, attn.dim}}}
	}
	embed := root.in("time_embedding")
	embed.linear("linear_1", attn.dim, time, true)
	embed.linear("linear_2", time, time, true)
	if !cfg.null("ofs_embed_dim") {
		root.timestep("ofs_embedding", cfg.size("ofs_embed_dim"), cfg.size("ofs_embed_dim"))
	}
	modulation := func(mod module, name string, factor int64) {
		mod.linear(name+".linear", time, factor*attn.dim, true)
		if affine {
			mod.norm(name+".norm", attn.dim, modelgraph.LayerNorm, true)
		}
	}
	for i := range cfg.count("num_layers") {
		block := root.in("transformer_blocks").block(i)
		modulation(block, "norm1", 6)
		var norms []modelgraph.Tensor
		for _, name := range []string{"norm_q", "norm_k"} {
			norms = append(norms, matrix(name, true, attn.width)...)
		}
		block.add("attn1", attn.op(false), norms, matrices(attn.dim, attn.dim, bias, "to_q", "to_k", "to_v"), matrices(attn.dim, attn.dim, true, "to_out.0"))
		modulation(block, "norm2", 6)
		block.feedForward("ff", attn.dim, 4*attn.dim, attn.dim, "gelu-approximate")
	}
	if affine {
		root.norm("norm_final", attn.dim, modelgraph.LayerNorm, true)
	}
	modulation(root, "norm_out", 2)
	root.linear("proj_out", attn.dim, out, true)
}

// hunyuanVideo is HunyuanVideoTransformer3DModel (transformer_hunyuan_video.py).
func hunyuanVideo(cfg *config, root module) {
	attn, in, patch, depth := headsOf(cfg), cfg.size("in_channels"), cfg.size("patch_size"), cfg.size("patch_size_t")
	hidden := int64(float64(attn.dim) * cfg.number("mlp_ratio"))
	text := cfg.size("text_embed_dim")
	cfg.only("qk_norm", `"rms_norm"`)
	cfg.only("image_condition_type", "null", `"latent_concat"`)
	root.conv("x_embedder.proj", in, attn.dim, depth, patch, patch)
	refiner := root.in("context_embedder")
	refiner.in("time_text_embed").timestep("timestep_embedder", sines, attn.dim)
	refiner.in("time_text_embed").timestep("text_embedder", text, attn.dim)
	refiner.linear("proj_in", text, attn.dim, true)
	for i := range cfg.count("num_refiner_layers") {
		block := refiner.in("token_refiner.refiner_blocks").at(i)
		block.norm("norm1", attn.dim, modelgraph.LayerNorm, true)
		block.add("attn", attn.op(false), matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v", "to_out.0"))
		block.norm("norm2", attn.dim, modelgraph.LayerNorm, true)
		block.feedForward("ff", attn.dim, 4*attn.dim, attn.dim, "linear-silu")
		block.linear("norm_out.linear", attn.dim, 2*attn.dim, true)
	}
	embed := root.in("time_text_embed")
	embed.unit = embed.path // its forward adds what its parts made: HunyuanVideoConditionEmbedding
	embed.timestep("timestep_embedder", sines, attn.dim)
	embed.timestep("text_embedder", cfg.size("pooled_projection_dim"), attn.dim)
	if cfg.flag("guidance_embeds") {
		embed.timestep("guidance_embedder", sines, attn.dim)
	}
	for i := range cfg.count("num_layers") {
		block := root.in("transformer_blocks").block(i)
		block.linear("norm1.linear", attn.dim, 6*attn.dim, true)
		block.linear("norm1_context.linear", attn.dim, 6*attn.dim, true)
		block.add("attn", attn.op(true), joined(attn, true, false)...)
		block.feedForward("ff", attn.dim, hidden, attn.dim, "gelu-approximate")
		block.feedForward("ff_context", attn.dim, hidden, attn.dim, "gelu-approximate")
	}
	for i := range cfg.count("num_single_layers") {
		block := root.in("single_transformer_blocks").block(i)
		block.add("attn", attn.op(true), vectors(attn.width, "norm_q", "norm_k"), matrices(attn.dim, attn.dim, true, "to_q", "to_k", "to_v"))
		block.linear("norm.linear", attn.dim, 3*attn.dim, true)
		block.linear("proj_mlp", attn.dim, hidden, true)
		block.linear("proj_out", attn.dim+hidden, attn.dim, true)
	}
	root.linear("norm_out.linear", attn.dim, 2*attn.dim, true)
	root.linear("proj_out", attn.dim, slices.Max([]int64{1, cfg.size("out_channels")})*depth*patch*patch, true)
}
