package forward

// encode is _encode: the first frame, then four by four.
func (run *causalVAE) encode(pixels picture) *value {
	run.clear()
	encoder := run.root.in("encoder")
	var out, last *value
	for i := range 1 + (pixels.frames-1)/4 {
		x := pixels
		x.value, x.frames = nil, 4
		if i == 0 {
			x.frames = 1
		}
		remembered := run.remember(encoder, "conv_in", x)
		x = run.convolve(encoder, "conv_in", x, run.cache["encoder.conv_in"])
		run.keep("encoder.conv_in", remembered)
		for j := range encoder.count("down_blocks") {
			block := encoder.at("down_blocks", j)
			if block.has("resample.1.weight") {
				run.replace(&x, run.shrink(block, x))
			} else {
				run.replace(&x, run.resnet(block, x))
			}
		}
		run.replace(&x, run.middle(encoder.in("mid_block"), x))
		made := run.head(encoder, x)
		run.become(&last, made.value)
		if i == 0 {
			out = last.hold()
			continue
		}
		run.become(&out, run.alloc(out.bytes+made.bytes))
	}
	moments := run.alloc(out.bytes)
	run.clear()
	run.drop(out, last)
	return moments
}

// shrink is WanResample downwards.
func (run *causalVAE) shrink(mod module, input picture) picture {
	flat := input
	flat.hold()
	if input.frames > 1 {
		run.replace(&flat, run.like(input))
	}
	padded := flat
	padded.batch, padded.frames, padded.height, padded.width = flat.batch*flat.frames, 1, flat.height+1, flat.width+1
	padded = run.picture(padded)
	small := padded
	small.height, small.width = flat.height/2, flat.width/2
	out := run.convolved(mod, "resample.1", padded, small)
	run.drop(padded.value, flat.value)
	out.batch, out.frames = input.batch, input.frames
	if !mod.has("time_conv.weight") {
		return out
	}
	place := mod.in("time_conv").path
	before := run.cache[place]
	copied := out
	copied.value = nil
	copied.frames = 1
	if before == nil {
		run.cache[place] = &cachedFrames{run.new(out.elements()), out.frames}
		return out
	}
	last := run.picture(copied)
	joined := out
	joined.frames = out.frames + 1
	joined = run.picture(joined)
	half := out
	half.frames = (out.frames + 1) / 2
	shape := half
	padded = joined
	padded.value = run.new(joined.elements())
	made := run.convolved(mod, "time_conv", padded, shape)
	run.drop(padded.value, joined.value, out.value)
	run.keep(place, &cachedFrames{last.value, 1})
	return made
}
