package forward

// autoencoderKL is AutoencoderKL's decode or encode (autoencoder_kl.py, vae.py).
func autoencoderKL(tape *tape, root module, call Call) {
	ratio := int64(1) << max(0, root.in("decoder").count("up_blocks")-1)
	whole := picture{batch: call.Batch, channels: root.inward("decoder.conv_in"), frames: 1, height: call.Height / ratio, width: call.Width / ratio}
	run := vae{tape: tape, root: root, ratio: ratio}
	if !call.Decode {
		whole = picture{batch: call.Batch, channels: root.inward("encoder.conv_in"), frames: 1, height: call.Height, width: call.Width}
	}
	whole = tape.picture(whole)
	parts := []picture{whole}
	if call.Slicing && call.Batch > 1 {
		part := whole
		part.batch, part.value = 1, nil
		parts = nil
		for range call.Batch {
			parts = append(parts, part)
		}
	}
	var done []*value
	for _, part := range parts {
		switch {
		case !call.Decode:
			done = append(done, run.encode(part).value)
		case call.Tiling && max(part.height, part.width) > call.tile()/ratio:
			done = append(done, run.tiles(part, call.tile()/ratio))
		default:
			done = append(done, run.decode(part).value)
		}
	}
	tape.joined(done)
	tape.drop(whole.value)
}

// vae is an autoencoder of images at work.
type vae struct {
	*tape
	root  module
	ratio int64
}

// middle is UNetMidBlock2D. The caller holds its input.
func (run vae) middle(mod module, sample picture) picture {
	hidden := run.resnet(mod.at("resnets", 0), sample, false)
	if mod.has("attentions.0.to_q.weight") {
		run.replace(&hidden, run.pixelAttention(mod.in("attentions.0"), hidden))
	}
	run.replace(&hidden, run.resnet(mod.at("resnets", 1), hidden, false))
	return hidden
}

func (run vae) plain(block module, hidden picture) picture { return run.resnet(block, hidden, false) }

// decode is Decoder.forward: a block's input is held until it is done.
func (run vae) decode(latents picture) picture {
	decoder := run.root.in("decoder")
	if run.root.has("post_quant_conv.weight") {
		latents = run.convolved(run.root, "post_quant_conv", latents, latents)
		defer run.drop(latents.value)
	}
	sample := run.convolved(decoder, "conv_in", latents, latents)
	run.replace(&sample, run.middle(decoder.in("mid_block"), sample))
	run.levels(decoder, "up_blocks", &sample, run.plain, func(block module, _ int, hidden *picture) {
		if block.has("upsamplers.0.conv.weight") {
			run.replace(hidden, run.upsampled(block, "upsamplers.0.conv", *hidden))
		}
	})
	return run.end(decoder, sample)
}

// end is conv_norm_out, conv_act and conv_out.
func (run vae) end(mod module, sample picture) picture {
	run.replace(&sample, run.groupNorm(sample))
	run.replace(&sample, run.like(sample))
	run.replace(&sample, run.convolved(mod, "conv_out", sample, sample))
	return sample
}

// encode is Encoder.forward.
func (run vae) encode(pixels picture) picture {
	encoder := run.root.in("encoder")
	sample := run.convolved(encoder, "conv_in", pixels, pixels)
	run.levels(encoder, "down_blocks", &sample, run.plain, func(block module, _ int, hidden *picture) {
		if block.has("downsamplers.0.conv.weight") {
			run.replace(hidden, run.halved(block, "downsamplers.0.conv", *hidden, true))
		}
	})
	run.replace(&sample, run.middle(encoder.in("mid_block"), sample))
	return run.end(encoder, sample)
}

// tiles is tiled_decode: squares that overlap by a quarter of the side, all kept until the last is
// done; then rows are joined, then the rows' results.
func (run vae) tiles(latents picture, side int64) *value {
	var tiles []*value
	step := side * 3 / 4
	for _, tile := range latents.tiles(side, side, step, step) {
		tiles = append(tiles, run.decode(tile).value)
	}
	pixels := latents.places() * run.ratio * run.ratio * run.root.out("decoder.conv_out")
	rows := run.new(pixels)
	whole := run.new(pixels)
	run.drop(rows)
	run.drop(tiles...)
	return whole
}
