package forward

// remember copies the last two frames of a convolution's input; one alone is joined with the one before.
func (run *causalVAE) remember(mod module, name string, x picture) *cachedFrames {
	frames := min(2, x.frames)
	size := x.elements() / x.frames
	copied := run.new(size * frames)
	if frames < 2 && run.cache[mod.in(name).path] != nil {
		run.become(&copied, run.new(size*2))
		frames = 2
	}
	return &cachedFrames{copied, frames}
}

// keep replaces the remembered frames.
func (run *causalVAE) keep(name string, frames *cachedFrames) {
	if old := run.cache[name]; old != nil {
		run.drop(old.value)
	}
	run.cache[name] = frames
}

// convolve is WanCausalConv3d: kept frames before, zeros around, in two copies.
func (run *causalVAE) convolve(mod module, name string, x picture, before *cachedFrames) picture {
	deep, high := mod.side(name, 2), mod.side(name, 3)
	padded := x
	padded.value = nil
	var joined *value
	if before != nil && deep > 1 {
		padded.frames += before.frames
		joined = run.new(padded.elements())
	}
	padded.frames, padded.height, padded.width = x.frames+deep-1, x.height+high-1, x.width+high-1
	padded = run.picture(padded)
	run.drop(joined)
	shape := x
	out := run.convolved(mod, name, padded, shape)
	run.drop(padded.value)
	return out
}

// norm is WanRMS_norm: raised to single precision, divided by the root, scaled
// by a number, by a vector, and shifted, a tensor each.
func (run *causalVAE) norm(x picture) picture {
	var raised *value
	if run.width < 4 && !run.exact {
		raised = run.single(x.elements())
	}
	root := run.single(x.places())
	least := run.single(x.places())
	run.drop(root)
	divided := run.alloc(x.elements() * run.normWidth())
	run.drop(raised, least)
	normalized := divided
	if run.normWidth() != run.width {
		normalized = run.new(x.elements())
		run.drop(divided)
	}
	scaled := run.new(x.elements())
	weighed := run.new(x.elements())
	run.drop(scaled)
	out := run.like(x)
	run.drop(weighed, normalized)
	return out
}

func (run *causalVAE) normWidth() int64 {
	if run.exact {
		return run.width
	}
	return 4
}

// tiles is tiled_decode: tiles of 256 pixels, 192 apart.
func (run *causalVAE) tiles(latents picture) *value {
	const side, step = 256 / latentRatio, 192 / latentRatio
	var rows []*value
	for _, tile := range latents.tiles(side, side, step, step) {
		run.clear()
		tile.frames = 1
		var time []*value
		total := int64(0)
		var last *value
		for range latents.frames {
			latent := run.convolve(run.root, "post_quant_conv", tile, nil)
			made := run.frame(latent)
			run.become(&last, latent.value)
			time = append(time, made.value)
			total += made.bytes
		}
		rows = append(rows, run.alloc(total))
		run.drop(time...)
		run.drop(last)
	}
	run.clear()
	pixels := run.new(latents.batch * run.root.out("decoder.conv_out") * (4*(latents.frames-1) + 1) * latents.height * latentRatio * latents.width * latentRatio)
	joined := run.alloc(pixels.bytes)
	run.drop(pixels)
	clamped := run.alloc(joined.bytes)
	run.drop(joined)
	run.drop(rows...)
	return clamped
}
