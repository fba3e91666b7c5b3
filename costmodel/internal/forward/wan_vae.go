package forward

// causalVAE is an autoencoder of videos that goes frame by frame, and keeps the
// last frames of every convolution's input (autoencoder_kl_wan.py; Qwen-Image's
// is its copy).
type causalVAE struct {
	*tape
	root  module
	cache map[string]*kept
	exact bool // norms are made in the tensor's own type (Qwen-Image)
}

// kept are the last frames of a convolution's input.
type kept struct {
	*value
	frames int64
}

// latentRatio is the side of the square of pixels of a latent.
const latentRatio = 8

func autoencoderWan(tape *tape, root module, call Call) { causal(tape, root, call, false) }

func autoencoderQwenImage(tape *tape, root module, call Call) { causal(tape, root, call, true) }

func causal(tape *tape, root module, call Call, exact bool) {
	run := &causalVAE{tape: tape, root: root, cache: make(map[string]*kept), exact: exact}
	if !call.Decode {
		pixels := tape.picture(picture{batch: call.Batch, channels: root.inward("encoder.conv_in"), frames: max(1, call.Frames), height: call.Height, width: call.Width})
		tape.drop(run.encode(pixels), pixels.value)
		return
	}
	latents := tape.picture(picture{batch: call.Batch, channels: root.inward("decoder.conv_in"), frames: latentFrames(max(1, call.Frames)), height: call.Height / latentRatio, width: call.Width / latentRatio})
	const tile = 256
	var done []*value
	part, parts := latents, int64(1)
	if call.Slicing && call.Batch > 1 {
		part.batch, parts = 1, call.Batch
	}
	for range parts {
		if call.Tiling && max(call.Height, call.Width) > tile {
			done = append(done, run.tiles(part))
		} else {
			done = append(done, run.decode(part))
		}
	}
	tape.joined(done)
	tape.drop(latents.value)
}

// clear drops what the convolutions kept.
func (run *causalVAE) clear() {
	for name, frames := range run.cache {
		run.drop(frames.value)
		delete(run.cache, name)
	}
}

// decode is _decode: a frame of latents at a time; what is done is joined with
// the next and copied.
func (run *causalVAE) decode(latents picture) *value {
	run.clear()
	whole := run.convolve(run.root, "post_quant_conv", latents, nil)
	var out, last *value
	for i := range latents.frames {
		frame := whole
		frame.frames = 1
		made := run.frame(frame)
		run.become(&last, made.value)
		if i == 0 {
			out = last.hold()
			continue
		}
		run.become(&out, run.alloc(out.bytes+made.bytes))
	}
	clamped := run.alloc(out.bytes)
	run.clear()
	run.drop(out, last, whole.value)
	return clamped
}

// tiles is tiled_decode: tiles of 256 pixels, 192 apart.
func (run *causalVAE) tiles(latents picture) *value {
	const side, step = 256 / latentRatio, 192 / latentRatio
	var rows []*value
	for top := int64(0); top < latents.height; top += step {
		for left := int64(0); left < latents.width; left += step {
			run.clear()
			var time []*value
			total := int64(0)
			var held *value
			for range latents.frames {
				tile := latents
				tile.value, tile.frames = nil, 1
				tile.height, tile.width = min(side, latents.height-top), min(side, latents.width-left)
				latent := run.convolve(run.root, "post_quant_conv", tile, nil)
				made := run.frame(latent)
				run.become(&held, latent.value)
				time = append(time, made.value)
				total += made.bytes
			}
			rows = append(rows, run.alloc(total))
			run.drop(time...)
			run.drop(held)
		}
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

// frame is WanDecoder3d.forward of one frame of latents. The caller holds what
// a module is given until it has given its result.
func (run *causalVAE) frame(latent picture) picture {
	decoder := run.root.in("decoder")
	remembered := run.remember(decoder, "conv_in", latent)
	x := run.convolve(decoder, "conv_in", latent, run.cache["decoder.conv_in"])
	run.keep("decoder.conv_in", remembered)
	run.replace(&x, run.middle(decoder.in("mid_block"), x))
	for i := range decoder.count("up_blocks") {
		block := decoder.at("up_blocks", i)
		hidden := x
		hidden.hold()
		for j := range block.count("resnets") {
			run.replace(&hidden, run.resnet(block.at("resnets", j), hidden))
		}
		if block.has("upsamplers.0.resample.1.weight") {
			run.replace(&hidden, run.grow(block.in("upsamplers.0"), hidden))
		}
		run.replace(&x, hidden)
	}
	return run.head(decoder, x)
}

// head is norm_out, the activation and conv_out.
func (run *causalVAE) head(mod module, x picture) picture {
	run.replace(&x, run.norm(x))
	run.replace(&x, run.like(x))
	name := mod.in("conv_out").path
	remembered := run.remember(mod, "conv_out", x)
	run.replace(&x, run.convolve(mod, "conv_out", x, run.cache[name]))
	run.keep(name, remembered)
	return x
}

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

// remember copies the last two frames of a convolution's input; one alone is
// joined with the one before.
func (run *causalVAE) remember(mod module, name string, x picture) *kept {
	frames := min(2, x.frames)
	size := x.elements() / x.frames
	copied := run.new(size * frames)
	if frames < 2 && run.cache[mod.in(name).path] != nil {
		run.become(&copied, run.new(size*2))
		frames = 2
	}
	return &kept{copied, frames}
}

// keep puts frames in the place of those before.
func (run *causalVAE) keep(name string, frames *kept) {
	if old := run.cache[name]; old != nil {
		run.drop(old.value)
	}
	run.cache[name] = frames
}

// convolve is WanCausalConv3d: kept frames before, zeros around, in two copies.
func (run *causalVAE) convolve(mod module, name string, x picture, before *kept) picture {
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

// resnet is WanResidualBlock. The name of what is remembered outlives its use.
func (run *causalVAE) resnet(block module, input picture) picture {
	beside := input
	beside.hold()
	if block.has("conv_shortcut.weight") {
		run.replace(&beside, run.convolve(block, "conv_shortcut", input, nil))
	}
	x := run.norm(input)
	run.replace(&x, run.like(x))
	var named *value
	for _, name := range []string{"conv1", "conv2"} {
		if name == "conv2" {
			run.replace(&x, run.norm(x))
			run.replace(&x, run.like(x))
		}
		place := block.in(name).path
		remembered := run.remember(block, name, x)
		run.drop(named)
		named = remembered.hold()
		run.replace(&x, run.convolve(block, name, x, run.cache[place]))
		run.keep(place, remembered)
	}
	sum := run.like(x)
	run.drop(x.value, named, beside.value)
	return sum
}

// middle is WanMidBlock.
func (run *causalVAE) middle(mod module, x picture) picture {
	hidden := run.resnet(mod.at("resnets", 0), x)
	run.replace(&hidden, run.attention(hidden))
	run.replace(&hidden, run.resnet(mod.at("resnets", 1), hidden))
	return hidden
}

// attention is WanAttentionBlock: inside each frame.
func (run *causalVAE) attention(input picture) picture {
	flat := input
	flat.batch, flat.frames = input.batch*input.frames, 1
	var rows *value
	if input.frames > 1 {
		rows = run.new(input.elements())
	}
	x := run.norm(flat)
	run.drop(rows)
	run.drop(run.alloc(1)) // a kernel of one place
	joint := run.new(3 * input.elements())
	apart := run.new(3 * input.elements())
	run.drop(joint)
	tokens := input.height * input.width
	run.flops += 8 * float64(input.places()) * float64(input.channels) * float64(input.channels)
	out := run.attend(flat.batch, 1, tokens, tokens, input.channels)
	if input.channels > widestHead {
		run.drop(run.single(input.elements()))
	}
	run.drop(x.value)
	placed := run.new(input.elements())
	run.drop(out)
	projected := run.new(input.elements())
	run.drop(placed)
	sum := run.like(input)
	run.drop(projected, apart)
	return sum
}

// grow is WanResample upwards: twice the frames but for the first, twice the
// sides, by single precision.
func (run *causalVAE) grow(mod module, input picture) picture {
	x := input
	x.hold()
	place := mod.in("time_conv").path
	if mod.has("time_conv.weight") {
		before, seen := run.cache[place]
		if !seen {
			run.cache[place] = &kept{run.alloc(0), 0} // "Rep"
		} else {
			if before.frames == 0 {
				before = nil
			}
			remembered := run.remember(mod, "time_conv", x)
			run.replace(&x, run.convolve(mod, "time_conv", x, before))
			run.keep(place, remembered)
			double := x
			double.channels, double.frames = x.channels/2, 2*x.frames
			run.replace(&x, run.picture(double))
		}
	}
	if x.frames > 1 {
		run.replace(&x, run.like(x))
	}
	large := x
	large.value = nil
	large.height, large.width = 2*x.height, 2*x.width
	var grown picture
	if run.width < 4 {
		raised := run.single(x.elements())
		wide := run.single(large.elements())
		run.drop(raised)
		grown = run.picture(large)
		run.drop(wide)
	} else {
		grown = run.picture(large)
	}
	flat := grown
	flat.batch, flat.frames = grown.batch*grown.frames, 1
	shape := flat
	out := run.convolved(mod, "resample.1", flat, shape)
	run.drop(grown.value, x.value)
	out.batch, out.frames = grown.batch, grown.frames
	return out
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
		run.cache[place] = &kept{run.new(out.elements()), out.frames}
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
	run.keep(place, &kept{last.value, 1})
	return made
}
