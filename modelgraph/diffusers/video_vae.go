package diffusers

import (
	"math/bits"

	"github.com/devmap-dev/devmap/modelgraph"
)

// autoencoderHunyuanVideo is AutoencoderKLHunyuanVideo
// (autoencoder_kl_hunyuan_video.py).
func autoencoderHunyuanVideo(cfg *config, root module) {
	widths := cfg.sizes("block_out_channels")
	layers, latent := cfg.count("layers_per_block"), cfg.size("latent_channels")
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("down_block_types", "HunyuanVideoDownBlock3D")))
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("up_block_types", "HunyuanVideoUpBlock3D")))
	cfg.only("temporal_compression_ratio", "4")
	attended, last := cfg.flag("mid_block_add_attention"), len(widths)-1
	// The first blocks change the sides of the frames, until the compression is reached. The two
	// before the last change the number of frames.
	spatial := bits.Len64(uint64(cfg.size("spatial_compression_ratio"))) - 1
	sampled := func(i int) bool { return i < spatial || i >= last-2 && i < last }
	middle := func(mod module) {
		if attended {
			mod.pixelAttention(widths[last])
		}
		mod.causal3D(0, widths[last], widths[last])
		mod.causal3D(1, widths[last], widths[last])
	}
	encoder := root.in("encoder")
	encoder.conv("conv_in.conv", cfg.size("in_channels"), widths[0], 3, 3, 3)
	encoder.in("down_blocks").levels(widths, layers, module.causal3D, sampled, "downsamplers.0.conv.conv", 3, 3, 3)
	middle(encoder.in("mid_block"))
	encoder.norm("conv_norm_out", widths[last], modelgraph.LayerNorm, true)
	encoder.conv("conv_out.conv", widths[last], 2*latent, 3, 3, 3)
	decoder := root.in("decoder")
	decoder.conv("conv_in.conv", latent, widths[last], 3, 3, 3)
	decoder.in("up_blocks").levels(reversed(widths), layers+1, module.causal3D, sampled, "upsamplers.0.conv.conv", 3, 3, 3)
	middle(decoder.in("mid_block"))
	decoder.norm("conv_norm_out", widths[0], modelgraph.LayerNorm, true)
	decoder.conv("conv_out.conv", widths[0], cfg.size("out_channels"), 3, 3, 3)
	root.conv("quant_conv", 2*latent, 2*latent, 1, 1, 1)
	root.conv("post_quant_conv", latent, latent, 1, 1, 1)
}

// causal3D is HunyuanVideoResnetBlockCausal3D.
func (mod module) causal3D(index int, in, out int64) {
	block := mod.in("resnets").block(index)
	block.norm("norm1", in, modelgraph.LayerNorm, true)
	block.conv("conv1.conv", in, out, 3, 3, 3)
	block.norm("norm2", out, modelgraph.LayerNorm, true)
	block.conv("conv2.conv", out, out, 3, 3, 3)
	if in != out {
		block.conv("conv_shortcut.conv", in, out, 1, 1, 1)
	}
}

// autoencoderCogVideoX is AutoencoderKLCogVideoX (autoencoder_kl_cogvideox.py). The norms of its
// decoder read the latents.
func autoencoderCogVideoX(cfg *config, root module) {
	widths := cfg.sizes("block_out_channels")
	layers, latent := cfg.count("layers_per_block"), cfg.size("latent_channels")
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("down_block_types", "CogVideoXDownBlock3D")))
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("up_block_types", "CogVideoXUpBlock3D")))
	last := len(widths) - 1
	encoder := root.in("encoder")
	encoder.conv("conv_in.conv", cfg.size("in_channels"), widths[0], 3, 3, 3)
	in, sampled := widths[last], func(i int) bool { return i < last }
	encoder.in("down_blocks").levels(widths, layers, func(block module, j int, in, out int64) { block.spatialResnet(j, in, out, 0) }, sampled, "downsamplers.0.conv", 3, 3)
	encoder.in("mid_block").spatialResnet(0, in, in, 0)
	encoder.in("mid_block").spatialResnet(1, in, in, 0)
	encoder.norm("norm_out", in, modelgraph.LayerNorm, true)
	encoder.conv("conv_out.conv", in, 2*latent, 3, 3, 3)
	decoder := root.in("decoder")
	decoder.conv("conv_in.conv", latent, in, 3, 3, 3)
	decoder.in("mid_block").spatialResnet(0, in, in, latent)
	decoder.in("mid_block").spatialResnet(1, in, in, latent)
	decoder.in("up_blocks").levels(reversed(widths), layers+1, func(block module, j int, in, out int64) { block.spatialResnet(j, in, out, latent) }, sampled, "upsamplers.0.conv", 3, 3)
	decoder.spatialNorm("norm_out", widths[0], latent)
	decoder.conv("conv_out.conv", widths[0], cfg.size("out_channels"), 3, 3, 3)
	quantConvs(cfg, root, cfg.size("out_channels"), 1, 1, 1) // out_channels, as diffusers has it
}

// spatialResnet is CogVideoXResnetBlock3D. latent is 0 in an encoder.
func (mod module) spatialResnet(index int, in, out, latent int64) {
	block := mod.in("resnets").block(index)
	block.spatialNorm("norm1", in, latent)
	block.spatialNorm("norm2", out, latent)
	block.conv("conv1.conv", in, out, 3, 3, 3)
	block.conv("conv2.conv", out, out, 3, 3, 3)
	if in != out {
		block.conv("conv_shortcut", in, out, 1, 1, 1)
	}
}

// spatialNorm is CogVideoXSpatialNorm3D, or a plain norm.
func (mod module) spatialNorm(name string, dim, latent int64) {
	if latent == 0 {
		mod.norm(name, dim, modelgraph.LayerNorm, true)
		return
	}
	norm := mod.in(name)
	norm.norm("norm_layer", dim, modelgraph.LayerNorm, true)
	norm.conv("conv_y.conv", latent, dim, 1, 1, 1)
	norm.conv("conv_b.conv", latent, dim, 1, 1, 1)
}
