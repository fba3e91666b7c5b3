package diffusers

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// autoencoderWan is AutoencoderKLWan (autoencoder_kl_wan.py) of Wan 2.1.
func autoencoderWan(cfg *config, root module) {
	cfg.only("is_residual", "false") // Wan 2.2's 5B
	cfg.only("patch_size", "null")
	base := cfg.size("base_dim")
	causalVAE(cfg, root, base, cfg.sizeOr("decoder_base_dim", base), cfg.size("in_channels"), cfg.size("out_channels"))
}

// autoencoderQwenImage is AutoencoderKLQwenImage (autoencoder_kl_qwenimage.py),
// which has the modules of Wan 2.1's.
func autoencoderQwenImage(cfg *config, root module) {
	base, channels := cfg.size("base_dim"), cfg.size("input_channels")
	causalVAE(cfg, root, base, base, channels, channels)
}

func causalVAE(cfg *config, root module, base, decoderBase, in, out int64) {
	cfg.only("attn_scales", "[]")
	multiples, latent, layers := cfg.sizes("dim_mult"), cfg.size("z_dim"), cfg.count("num_res_blocks")
	blocks := len(multiples)
	sampled := cfg.flags("temperal_downsample", max(0, blocks-1))
	if layers == 0 {
		cfg.fail("num_res_blocks", "0 is not a number of blocks from 1 up")
	}
	encoder := root.in("encoder")
	encoder.conv("conv_in", in, base, 3, 3, 3)
	before, index := base, 0
	for i, multiple := range multiples {
		width := base * multiple
		for range layers {
			encoder.in("down_blocks").block(index).causalResnet(before, width)
			before = width
			index++
		}
		if i < blocks-1 {
			sampler := encoder.in("down_blocks").at(index)
			sampler.conv("resample.1", width, width, 3, 3)
			if sampled[i] {
				sampler.conv("time_conv", width, width, 3, 1, 1)
			}
			index++
		}
	}
	causalEnd(encoder, before, 2*latent)
	root.conv("quant_conv", 2*latent, 2*latent, 1, 1, 1)
	root.conv("post_quant_conv", latent, latent, 1, 1, 1)
	slices.Reverse(sampled)
	decoder := root.in("decoder")
	before = decoderBase * multiples[blocks-1]
	decoder.conv("conv_in", latent, before, 3, 3, 3)
	causalMiddle(decoder.in("mid_block"), before)
	for i := range blocks {
		width, block := decoderBase*multiples[blocks-1-i], decoder.in("up_blocks").at(i)
		for j := range layers + 1 {
			block.in("resnets").block(j).causalResnet(before, width)
			before = width
		}
		if i < blocks-1 {
			sampler := block.in("upsamplers.0")
			sampler.conv("resample.1", width, width/2, 3, 3)
			if sampled[i] {
				sampler.conv("time_conv", width, 2*width, 3, 1, 1)
			}
			before = width / 2
		}
	}
	decoder.gamma("norm_out", before)
	decoder.conv("conv_out", before, out, 3, 3, 3)
}

// causalEnd adds the middle and the output of an encoder.
func causalEnd(encoder module, width, out int64) {
	causalMiddle(encoder.in("mid_block"), width)
	encoder.gamma("norm_out", width)
	encoder.conv("conv_out", width, out, 3, 3, 3)
}

// causalMiddle is WanMidBlock: attention inside a frame between two residual
// blocks.
func causalMiddle(mod module, width int64) {
	op := heads{dim: width, count: 1, width: width}.op(false)
	op.Fused = true
	mod.add("attentions.0", op, []modelgraph.Tensor{{Name: "norm.gamma", Shape: []int64{width, 1, 1}}},
		matrix("to_qkv", true, 3*width, width, 1, 1), matrix("proj", true, width, width, 1, 1))
	mod.in("resnets").block(0).causalResnet(width, width)
	mod.in("resnets").block(1).causalResnet(width, width)
}

// causalResnet is WanResidualBlock.
func (mod module) causalResnet(in, out int64) {
	mod.gamma("norm1", in)
	mod.conv("conv1", in, out, 3, 3, 3)
	mod.gamma("norm2", out)
	mod.conv("conv2", out, out, 3, 3, 3)
	if in != out {
		mod.conv("conv_shortcut", in, out, 1, 1, 1)
	}
}
