package forward

// resnet is WanResidualBlock. The remembered value's name outlives its use.
func (run *causalVAE) resnet(block module, input picture) picture {
	residual := input
	residual.hold()
	if block.has("conv_shortcut.weight") {
		run.replace(&residual, run.convolve(block, "conv_shortcut", input, nil))
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
	run.drop(x.value, named, residual.value)
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

// grow is WanResample upwards: twice the frames but for the first, twice the sides, by single precision.
func (run *causalVAE) grow(mod module, input picture) picture {
	x := input
	x.hold()
	place := mod.in("time_conv").path
	if mod.has("time_conv.weight") {
		before, seen := run.cache[place]
		if !seen {
			run.cache[place] = &cachedFrames{run.alloc(0), 0} // "Rep"
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
