package forward

// causalVAE is an autoencoder of videos that goes frame by frame, and keeps the last frames of
// every convolution's input (autoencoder_kl_wan.py; Qwen-Image's is its copy).
type causalVAE struct {
	*tape
	root  module
	cache map[string]*cachedFrames
	exact bool // norms are made in the tensor's own type (Qwen-Image)
}

// cachedFrames are the last frames of a convolution's input.
type cachedFrames struct {
	*value
	frames int64
}

// latentRatio is the side of the square of pixels of a latent.
const latentRatio = 8

func autoencoderWan(tape *tape, root module, call Call) { causal(tape, root, call, false) }

func autoencoderQwenImage(tape *tape, root module, call Call) { causal(tape, root, call, true) }

func causal(tape *tape, root module, call Call, exact bool) {
	run := &causalVAE{tape: tape, root: root, cache: make(map[string]*cachedFrames), exact: exact}
	const tile = 256
	tape.video(root, call, codec{"conv_in", run.encode, func(latents picture) *value {
		if call.Tiling && max(call.Height, call.Width) > tile {
			return run.tiles(latents)
		}
		return run.decode(latents)
	}, tape.joined})
}

// clear drops the convolutions' frames.
func (run *causalVAE) clear() {
	for name, frames := range run.cache {
		run.drop(frames.value)
		delete(run.cache, name)
	}
}

// decode is _decode: one frame of latents at a time; each result is joined to the earlier ones by copy.
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

// frame is WanDecoder3d.forward of one latent frame. The caller holds a module's input meanwhile.
func (run *causalVAE) frame(latent picture) picture {
	decoder := run.root.in("decoder")
	remembered := run.remember(decoder, "conv_in", latent)
	x := run.convolve(decoder, "conv_in", latent, run.cache["decoder.conv_in"])
	run.keep("decoder.conv_in", remembered)
	run.replace(&x, run.middle(decoder.in("mid_block"), x))
	run.levels(decoder, "up_blocks", &x, run.resnet, func(block module, _ int, hidden *picture) {
		if block.has("upsamplers.0.resample.1.weight") {
			run.replace(hidden, run.grow(block.in("upsamplers.0"), *hidden))
		}
	})
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
