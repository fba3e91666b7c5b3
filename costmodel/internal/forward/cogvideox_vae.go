package forward

// cogVAE is AutoencoderKLCogVideoX (autoencoder_kl_cogvideox.py): two latents at a time. A new
// dictionary has every convolution's frames for the next two; the previous one lives until the end.
type cogVAE struct {
	*tape
	root          module
	before, after map[string]*value
}

func autoencoderCogVideoX(tape *tape, root module, call Call) {
	run := &cogVAE{tape: tape, root: root}
	tape.video(root, call, codec{"conv_in.conv", run.encode, func(latents picture) *value {
		// Tiles are half as high and as wide as the videos that it was made for.
		const high, wide = 480 / 2 / latentRatio, 720 / 2 / latentRatio
		if call.Tiling && (latents.height > high || latents.width > wide) {
			return run.tiles(latents, high, wide)
		}
		return run.decode(latents)
	}, tape.joined})
}

// tiles is tiled_decode: a sixth of the height and a fifth of the width shared with the next.
func (run *cogVAE) tiles(latents picture, high, wide int64) *value {
	var rows []*value
	for _, tile := range latents.tiles(high, wide, high*5/6, wide*4/5) {
		rows = append(rows, run.decode(tile))
	}
	whole := latents.batch * run.root.out("decoder.conv_out.conv") * (4*(latents.frames-1) + 1) * latents.height * latents.width * latentRatio * latentRatio
	joined := run.new(whole)
	out := run.new(whole)
	run.drop(joined)
	run.drop(rows...)
	return out
}

// next makes what was kept what came before.
func (run *cogVAE) next() {
	for _, old := range run.before {
		run.drop(old)
	}
	run.before, run.after = run.after, make(map[string]*value)
}

// decode is _decode.
func (run *cogVAE) decode(latents picture) *value {
	const pair = 2
	run.before, run.after = map[string]*value{}, map[string]*value{}
	var done []*value
	total := int64(0)
	for i := range max(1, latents.frames/pair) {
		part := latents
		part.value, part.frames = nil, min(pair, latents.frames)
		if i == 0 && latents.frames > pair {
			part.frames += latents.frames % pair
		}
		made := run.frames(part)
		run.next()
		done = append(done, made.value)
		total += made.bytes
	}
	run.next()
	run.next()
	joined := run.alloc(total)
	run.drop(done...)
	return joined
}

// frames is CogVideoXDecoder3D.forward.
func (run *cogVAE) frames(latents picture) picture {
	decoder := run.root.in("decoder")
	x := run.causal(decoder, "conv_in.conv", latents)
	for j := range decoder.count("mid_block.resnets") {
		run.replace(&x, run.resnet(decoder.at("mid_block.resnets", j), x, latents))
	}
	run.levels(decoder, "up_blocks", &x, func(block module, hidden picture) picture { return run.resnet(block, hidden, latents) }, func(block module, i int, hidden *picture) {
		if block.has("upsamplers.0.conv.weight") {
			run.replace(hidden, run.grow(block.in("upsamplers.0"), *hidden, i < 2))
		}
	})
	run.replace(&x, run.norm(decoder.in("norm_out"), x, latents))
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(decoder, "conv_out.conv", x))
	return x
}

// causal is CogVideoXCausalConv3d: it joins the previous frames in front and keeps the last ones,
// all of them if the kernel spans one frame.
func (run *cogVAE) causal(mod module, name string, x picture) picture {
	deep := mod.side(name, 2)
	padded := x
	padded.hold()
	if deep > 1 {
		padded.frames = x.frames + deep - 1
		run.replace(&padded, run.picture(padded))
	}
	frames := padded.elements() / padded.frames
	if deep > 1 {
		frames *= deep - 1
	} else {
		frames *= padded.frames
	}
	run.after[mod.in(name).path] = run.new(frames)
	out := run.safe(mod, name, padded, x)
	run.drop(padded.value)
	return out
}

// safe is CogVideoXSafeConv3d: inputs of more than 2 GiB go in parts, which
// cuDNN takes one after another, and are joined.
func (run *cogVAE) safe(mod module, name string, input, shape picture) picture {
	const limit = 2 << 30
	parts := input.elements()*2/limit + 1
	if parts == 1 {
		return run.convolved(mod, name, input, shape)
	}
	var pieces []*value
	for i := range parts {
		piece := shape
		piece.frames = (shape.frames + parts - 1 - i) / parts
		from := input
		from.frames = piece.frames + input.frames - shape.frames
		from = run.picture(from)
		pieces = append(pieces, run.convolved(mod, name, from, piece).value)
		run.drop(from.value)
	}
	shape.channels = mod.out(name)
	out := run.picture(shape)
	run.drop(pieces...)
	return out
}

// norm is CogVideoXSpatialNorm3D: latents, resized, scale and shift a plain norm's result. Without
// latents it is that norm.
func (run *cogVAE) norm(mod module, x, latents picture) picture {
	if !mod.has("norm_layer.weight") {
		return run.groupNorm(x)
	}
	grown := x
	grown.channels = latents.channels
	grown = run.picture(grown)
	if x.frames > 1 && x.frames%2 == 1 { // the first frame on its own, then joined
		joined := run.like(grown)
		run.drop(grown.value)
		grown = joined
	}
	scale := run.causal(mod, "conv_y.conv", grown)
	shift := run.causal(mod, "conv_b.conv", grown)
	normed := run.groupNorm(x)
	scaled := run.like(x)
	out := run.like(x)
	run.drop(scaled.value, normed.value, scale.value, shift.value, grown.value)
	return out
}

// resnet is CogVideoXResnetBlock3D.
func (run *cogVAE) resnet(block module, input, latents picture) picture {
	x := run.norm(block.in("norm1"), input, latents)
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(block, "conv1.conv", x))
	run.replace(&x, run.norm(block.in("norm2"), x, latents))
	run.replace(&x, run.like(x))
	run.replace(&x, run.causal(block, "conv2.conv", x))
	residual := input
	residual.hold()
	if block.has("conv_shortcut.weight") {
		run.replace(&residual, run.safe(block, "conv_shortcut", input, x))
	}
	sum := run.like(x)
	run.drop(x.value, residual.value)
	return sum
}

// grow is CogVideoXUpsample3D: frames too if time is compressed, the first separately.
func (run *cogVAE) grow(mod module, input picture, time bool) picture {
	large := input
	large.height, large.width = 2*input.height, 2*input.width
	var first *value
	switch {
	case time && input.frames > 1 && input.frames%2 == 1:
		large.frames = 2*input.frames - 1
		rest := large
		rest.frames--
		first = run.new(large.elements() / large.frames)
		others := run.new(rest.elements())
		large = run.picture(large)
		run.drop(others)
	case time && input.frames > 1:
		large.frames = 2 * input.frames
		large = run.picture(large)
	default:
		flat := run.like(input)
		large = run.picture(large)
		run.drop(flat.value)
	}
	flat := run.like(large)
	run.drop(large.value)
	flat.batch, flat.frames = large.batch*large.frames, 1
	out := run.convolved(mod, "conv", flat, flat)
	run.drop(flat.value, first)
	out.batch, out.frames = large.batch, large.frames
	return out
}

// encode is _encode: eight frames at a time.
func (run *cogVAE) encode(pixels picture) *value {
	const batch = 8
	run.before, run.after = map[string]*value{}, map[string]*value{}
	encoder := run.root.in("encoder")
	var done []*value
	for i := range max(1, pixels.frames/batch) {
		x := pixels
		x.value, x.frames = nil, min(batch, pixels.frames)
		if i == 0 && pixels.frames > batch {
			x.frames += pixels.frames % batch
		}
		x = run.causal(encoder, "conv_in.conv", x)
		run.levels(encoder, "down_blocks", &x, func(block module, hidden picture) picture { return run.resnet(block, hidden, picture{}) }, func(block module, j int, hidden *picture) {
			if block.has("downsamplers.0.conv.weight") {
				if j < 2 && hidden.frames > 1 {
					hidden.frames = (hidden.frames + 1) / 2
				}
				flat := *hidden
				flat.batch, flat.frames = hidden.batch*hidden.frames, 1
				made := run.halved(block, "downsamplers.0.conv", flat, true)
				made.batch, made.frames = hidden.batch, hidden.frames
				run.replace(hidden, made)
			}
		})
		for k := range encoder.count("mid_block.resnets") {
			run.replace(&x, run.resnet(encoder.at("mid_block.resnets", k), x, picture{}))
		}
		run.replace(&x, run.norm(encoder.in("norm_out"), x, picture{}))
		run.replace(&x, run.like(x))
		run.replace(&x, run.causal(encoder, "conv_out.conv", x))
		run.next()
		done = append(done, x.value)
	}
	run.next()
	run.next()
	total := int64(0)
	for _, part := range done {
		total += part.bytes
	}
	joined := run.alloc(total)
	run.drop(done...)
	return joined
}
