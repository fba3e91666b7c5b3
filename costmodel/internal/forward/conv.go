package forward

// conv is a convolution that gives so many places, of a model's patches: no
// place is read twice, and nothing else is alive.
func (k *kernels) conv(mod module, name string, places int64) *value {
	k.convWork(mod, name, places)
	return k.new(places * mod.out(name))
}

func (k *kernels) convWork(mod module, name string, places int64) {
	work := 2 * float64(places)
	for _, side := range mod.shapes[mod.in(name).path+".weight"] {
		work *= float64(side)
	}
	k.flops += work
}

// aligned is the multiple that cuDNN's kernels want channels in.
const aligned = 8

// convolved is a convolution of a picture. cuDNN's kernels for half precision want channels last,
// so they copy input, weight and output with padded channels. This matches allocations of
// AutoencoderKL and SDXL's UNet to the byte (cuDNN 9.19 on an H200). A kernel of one place copies
// nothing; if channels are last already, only the weight is copied.
func (k *kernels) convolved(mod module, name string, input, shape picture) picture {
	shape.channels = mod.out(name)
	shape.strided = input.strided && input.batch > 1
	k.convWork(mod, name, shape.places())
	own := k.weight(mod, name)
	defer k.drop(own)
	out := k.picture(shape)
	weight := k.width
	fill := func(channels int64) int64 { return (channels + aligned - 1) / aligned * aligned }
	kernel := int64(1)
	for i := 2; mod.side(name, i) > 0; i++ {
		kernel *= mod.side(name, i)
	}
	weight *= kernel * fill(mod.out(name)) * fill(mod.inward(name))
	switch {
	case kernel == 1:
		k.drop(k.alloc(1))
	case shape.strided:
		k.drop(k.alloc(weight))
	default:
		k.drop(k.alloc(k.width*(fill(input.channels)*input.places()+fill(shape.channels)*shape.places()) + weight + 1))
	}
	return out
}

// groupNorm copies strided input; means and deviations of the groups are a few hundred bytes.
func (k *kernels) groupNorm(pic picture) picture {
	var copied *value
	if pic.strided {
		copied = k.new(pic.elements())
		pic.strided = false
	}
	out := k.like(pic)
	k.drop(k.single(pic.batch*pic.channels), copied)
	return out
}
