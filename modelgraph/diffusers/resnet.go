package diffusers

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// resnet is ResnetBlock2D (resnet.py). time is the width of the timestep's embedding that is added
// inside, 0 for none.
func (mod module) resnet(index int, in, out, time int64) {
	block := mod.in("resnets").block(index)
	block.norm("norm1", in, modelgraph.LayerNorm, true)
	block.conv("conv1", in, out, 3, 3)
	if time > 0 {
		block.linear("time_emb_proj", time, out, true)
	}
	block.norm("norm2", out, modelgraph.LayerNorm, true)
	block.conv("conv2", out, out, 3, 3)
	if in != out {
		block.conv("conv_shortcut", in, out, 1, 1)
	}
}

// pixelAttention is the attention in the middle of an autoencoder, over all places and with one
// head (unet_2d_blocks.py: UNetMidBlock2D).
func (mod module) pixelAttention(dim int64) {
	op := heads{dim: dim, count: 1, width: dim}.op(false)
	mod.add("attentions.0", op, matrix("group_norm", true, dim), matrices(dim, dim, true, "to_q", "to_k", "to_v", "to_out.0"))
}

// autoencoderKL is AutoencoderKL (autoencoder_kl.py): the VAE of SDXL, SD3 and
// Flux.
func autoencoderKL(cfg *config, root module) {
	widths := cfg.sizes("block_out_channels")
	layers, latent := cfg.count("layers_per_block"), cfg.size("latent_channels")
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("down_block_types", "DownEncoderBlock2D")))
	cfg.forBlocks("block_out_channels", widths, len(cfg.kinds("up_block_types", "UpDecoderBlock2D")))
	attended, last := cfg.flag("mid_block_add_attention"), widths[len(widths)-1]
	middle := func(mod module) {
		if attended {
			mod.pixelAttention(last)
		}
		mod.resnet(0, last, last, 0)
		mod.resnet(1, last, last, 0)
	}
	encoder := root.in("encoder")
	encoder.conv("conv_in", cfg.size("in_channels"), widths[0], 3, 3)
	plain := func(block module, j int, in, out int64) { block.resnet(j, in, out, 0) }
	sampled := func(i int) bool { return i < len(widths)-1 }
	encoder.in("down_blocks").levels(widths, layers, plain, sampled, "downsamplers.0.conv", 3, 3)
	middle(encoder.in("mid_block"))
	encoder.norm("conv_norm_out", last, modelgraph.LayerNorm, true)
	encoder.conv("conv_out", last, 2*latent, 3, 3)
	decoder := root.in("decoder")
	decoder.conv("conv_in", latent, last, 3, 3)
	decoder.in("up_blocks").levels(reversed(widths), layers+1, plain, sampled, "upsamplers.0.conv", 3, 3)
	middle(decoder.in("mid_block"))
	decoder.norm("conv_norm_out", widths[0], modelgraph.LayerNorm, true)
	decoder.conv("conv_out", widths[0], cfg.size("out_channels"), 3, 3)
	quantConvs(cfg, root, latent, 1, 1)
}

// levels adds the blocks of an encoder's way down, or of a decoder's way up: residual blocks of
// each width. Blocks for which sampled returns true end with a convolution to another size.
func (mod module) levels(widths []int64, layers int, resnet func(block module, j int, in, out int64), sampled func(i int) bool, sampler string, kernel ...int64) {
	in := widths[0]
	for i, out := range widths {
		block := mod.at(i)
		for j := range layers {
			resnet(block, j, in, out)
			in = out
		}
		if sampled(i) {
			block.conv(sampler, out, out, kernel...)
		}
	}
}

func reversed(widths []int64) []int64 {
	back := slices.Clone(widths)
	slices.Reverse(back)
	return back
}

// quantConvs are the projections between encoder, latents and decoder.
func quantConvs(cfg *config, root module, channels int64, kernel ...int64) {
	if cfg.flag("use_quant_conv") {
		root.conv("quant_conv", 2*channels, 2*channels, kernel...)
	}
	if cfg.flag("use_post_quant_conv") {
		root.conv("post_quant_conv", channels, channels, kernel...)
	}
}
