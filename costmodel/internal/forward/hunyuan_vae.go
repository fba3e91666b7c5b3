package forward

// hunyuanVAE is AutoencoderKLHunyuanVideo at work (autoencoder_kl_hunyuan_video.py).
type hunyuanVAE struct {
	*tape
	root module
}

func autoencoderHunyuan(tape *tape, root module, call Call) {
	run := &hunyuanVAE{tape, root}
	const side, long = 256 / latentRatio, 4 // a tile's latents
	tape.video(root, call, codec{"conv_in.conv", run.encode, func(latents picture) *value {
		if latents.frames > long {
			return run.clips(latents, call.Tiling)
		}
		return run.clip(latents, call.Tiling && max(latents.height, latents.width) > side)
	}, func(videos []*value) { tape.drop(videos...) }})
}

// clips is _temporal_tiled_decode: five latents at a time, three apart, all kept until they are joined.
func (run *hunyuanVAE) clips(latents picture, tiled bool) *value {
	const side, long, step = 256 / latentRatio, 4, 3
	var row []*value
	for i := int64(0); i < latents.frames; i += step {
		part := latents
		part.value, part.frames = nil, min(long+1, latents.frames-i)
		row = append(row, run.clip(part, tiled && max(part.height, part.width) > side))
	}
	joined := run.new(latents.batch * run.root.out("decoder.conv_out.conv") * (4*(latents.frames-1) + 1) * latents.height * latents.width * latentRatio * latentRatio)
	run.drop(row...)
	return joined
}

// clip decodes latents whole, or tile by tile.
func (run *hunyuanVAE) clip(latents picture, tiled bool) *value {
	if !tiled {
		made := run.decode(latents)
		return made.value
	}
	const side, step = 256 / latentRatio, 192 / latentRatio
	var tiles []*value
	for _, tile := range latents.tiles(side, side, step, step) {
		tiles = append(tiles, run.decode(tile).value)
	}
	whole := latents.batch * run.root.out("decoder.conv_out.conv") * (4*(latents.frames-1) + 1) * latents.height * latents.width * latentRatio * latentRatio
	rows := run.new(whole)
	joined := run.new(whole)
	run.drop(rows)
	run.drop(tiles...)
	return joined
}

// causal is HunyuanVideoCausalConv3d: the edges are repeated, and frames before the first.
func (run *hunyuanVAE) causal(mod module, name string, x picture) picture {
	deep, high := mod.side(name, 2), mod.side(name, 3)
	padded := x
	padded.frames, padded.height, padded.width, padded.strided = x.frames+deep-1, x.height+high-1, x.width+high-1, false
	padded = run.picture(padded)
	shape := x
	shape.strided = false
	out := run.convolved(mod, name, padded, shape)
	run.drop(padded.value)
	return out
}

// resnet is HunyuanVideoResnetBlockCausal3D.
func (run *hunyuanVAE) resnet(block module, input picture) picture {
	residual := input
	residual.hold()
	if input.strided {
		residual.strided = false
		run.replace(&residual, run.like(residual))
	}
	x := run.groupNorm(residual)
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(block, "conv1.conv", x))
	run.replace(&x, run.groupNorm(x))
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(block, "conv2.conv", x))
	if block.has("conv_shortcut.conv.weight") {
		run.replace(&residual, run.causal(block, "conv_shortcut.conv", residual))
	}
	sum := run.like(x)
	run.drop(x.value, residual.value)
	return sum
}

// middle is HunyuanVideoMidBlock3D: causal attention by frames, with a mask of every pair.
func (run *hunyuanVAE) middle(mod module, sample picture) picture {
	hidden := run.resnet(mod.at("resnets", 0), sample)
	if mod.has("attentions.0.to_q.weight") {
		rows := hidden
		rows.value = run.new(hidden.elements())
		run.drop(hidden.value)
		tokens := rows.frames * rows.height * rows.width
		earlier := run.alloc(tokens * tokens)
		chosen := run.single(tokens * tokens)
		run.drop(earlier)
		mask := chosen
		if run.width < 4 {
			mask = run.new(tokens * tokens)
			run.drop(chosen)
		}
		attended := run.pixelAttention(mod.in("attentions.0"), rows)
		run.drop(rows.value, mask)
		hidden = attended
	}
	run.replace(&hidden, run.resnet(mod.at("resnets", 1), hidden))
	return hidden
}

// decode is HunyuanVideoDecoder3D.forward.
func (run *hunyuanVAE) decode(latents picture) picture {
	decoder := run.root.in("decoder")
	projected := run.convolved(run.root, "post_quant_conv", latents, latents)
	x := run.causal(decoder, "conv_in.conv", projected)
	run.replace(&x, run.middle(decoder.in("mid_block"), x))
	blocks := decoder.count("up_blocks")
	run.levels(decoder, "up_blocks", &x, run.resnet, func(block module, i int, hidden *picture) {
		if block.has("upsamplers.0.conv.conv.weight") {
			run.replace(hidden, run.grow(block.in("upsamplers.0"), *hidden, i < 3, i >= blocks-3 && i < blocks-1))
		}
	})
	out := run.end(decoder, x)
	run.drop(projected.value)
	return out
}

// end is the last norm, activation and convolution.
func (run *hunyuanVAE) end(mod module, x picture) picture {
	run.replace(&x, run.groupNorm(x))
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(mod, "conv_out.conv", x))
	return x
}

// grow is HunyuanVideoUpsampleCausal3D: the first frame separately; both results keep their names.
func (run *hunyuanVAE) grow(mod module, input picture, sides, time bool) picture {
	first := input
	first.frames = 1
	if sides {
		first.height, first.width = 2*input.height, 2*input.width
	}
	first = run.picture(first)
	joined := first
	joined.value = nil
	var others picture
	if input.frames > 1 {
		apart := input
		apart.frames--
		others = run.picture(apart)
		grown := first
		grown.frames = apart.frames
		if time {
			grown.frames *= 2
		}
		run.replace(&others, run.picture(grown))
		joined.frames = 1 + others.frames
		joined = run.picture(joined)
	} else {
		joined = first
		joined.hold()
	}
	out := run.causal(mod, "conv.conv", joined)
	run.drop(first.value, others.value, joined.value)
	return out
}

// encode is _encode, whole.
func (run *hunyuanVAE) encode(pixels picture) *value {
	encoder := run.root.in("encoder")
	x := run.causal(encoder, "conv_in.conv", pixels)
	blocks := encoder.count("down_blocks")
	run.levels(encoder, "down_blocks", &x, run.resnet, func(block module, i int, hidden *picture) {
		if block.has("downsamplers.0.conv.conv.weight") {
			padded := *hidden
			padded.frames, padded.height, padded.width = hidden.frames+2, hidden.height+2, hidden.width+2
			padded = run.picture(padded)
			small := *hidden
			if i < 3 {
				small.height, small.width = hidden.height/2, hidden.width/2
			}
			if i >= blocks-3 && i < blocks-1 {
				small.frames = (hidden.frames + 1) / 2
			}
			made := run.convolved(block, "downsamplers.0.conv.conv", padded, small)
			run.drop(padded.value)
			run.replace(hidden, made)
		}
	})
	run.replace(&x, run.middle(encoder.in("mid_block"), x))
	return run.end(encoder, x).value
}
