package forward

// picture is a tensor of channels at places: [batch, channels, frames, height,
// width]. Of images there is one frame.
type picture struct {
	*value
	batch, channels       int64
	frames, height, width int64
	// strided: its channels lie together, as attention leaves them; kernels
	// that want them apart copy it first.
	strided bool
}

func (pic picture) places() int64   { return pic.batch * pic.frames * pic.height * pic.width }
func (pic picture) elements() int64 { return pic.places() * pic.channels }

// picture allocates one.
func (tape *tape) picture(shape picture) picture {
	shape.value = tape.new(shape.elements())
	return shape
}

// like is another tensor of a picture's shape.
func (tape *tape) like(pic picture) picture { return tape.picture(pic) }

// replace gives a name to a new picture.
func (tape *tape) replace(name *picture, fresh picture) {
	old := *name
	*name = fresh
	tape.drop(old.value)
}

// conv is a convolution that gives so many places, of a model's patches: no
// place is read twice, and nothing else is alive.
func (tape *tape) conv(mod module, name string, places int64) *value {
	tape.convWork(mod, name, places)
	return tape.new(places * mod.out(name))
}

func (tape *tape) convWork(mod module, name string, places int64) {
	work := 2 * float64(places)
	for _, side := range mod.shapes[mod.in(name).path+".weight"] {
		work *= float64(side)
	}
	tape.flops += work
}

// aligned is the multiple that cuDNN's kernels want channels in.
const aligned = 8

// convolved is a convolution of a picture. cuDNN's kernels for half precision
// want channels together: input, weight and output are copied so, their
// channels filled up, beside what they are copied from (cuDNN 9.19 on an H200,
// allocations of AutoencoderKL and SDXL's UNet: to the byte). A kernel of one
// place needs nothing; where channels lie together already only the weight is
// copied.
func (tape *tape) convolved(mod module, name string, input, shape picture) picture {
	shape.channels = mod.out(name)
	shape.strided = input.strided && input.batch > 1
	tape.convWork(mod, name, shape.places())
	own := tape.weight(mod, name)
	defer tape.drop(own)
	out := tape.picture(shape)
	weight := tape.width
	fill := func(channels int64) int64 { return (channels + aligned - 1) / aligned * aligned }
	kernel := int64(1)
	for i := 2; mod.side(name, i) > 0; i++ {
		kernel *= mod.side(name, i)
	}
	weight *= kernel * fill(mod.out(name)) * fill(mod.inward(name))
	switch {
	case tape.bare:
	case kernel == 1:
		tape.drop(tape.alloc(1))
	case shape.strided:
		tape.drop(tape.alloc(weight))
	default:
		tape.drop(tape.alloc(tape.width*(fill(input.channels)*input.places()+fill(shape.channels)*shape.places()) + weight + 1))
	}
	return out
}

// groupNorm copies what is strided; means and deviations of the groups are a
// few hundred bytes.
func (tape *tape) groupNorm(pic picture) picture {
	var copied *value
	if pic.strided {
		copied = tape.new(pic.elements())
		pic.strided = false
	}
	out := tape.like(pic)
	tape.drop(tape.single(pic.batch*pic.channels), copied)
	return out
}

// upsampled doubles the sides, and convolves.
func (tape *tape) upsampled(mod module, name string, pic picture) picture {
	return tape.grown(mod, name, pic, 2*pic.height, 2*pic.width)
}

// grown makes a picture of other sides, and convolves.
func (tape *tape) grown(mod module, name string, pic picture, height, width int64) picture {
	large := pic
	large.height, large.width = height, width
	large.strided = pic.strided && pic.batch > 1
	large = tape.picture(large)
	out := tape.convolved(mod, name, large, large)
	tape.drop(large.value)
	return out
}

// halved halves the sides; padded: a row and a column are added first
// (downsampling.py: Downsample2D with padding 0).
func (tape *tape) halved(mod module, name string, pic picture, padded bool) picture {
	from := pic
	from.value = nil
	if padded {
		from.height, from.width = pic.height+1, pic.width+1
		from = tape.picture(from)
	}
	small := pic
	small.height, small.width = pic.height/2, pic.width/2
	if !padded {
		small.height, small.width = (pic.height+1)/2, (pic.width+1)/2
	}
	out := tape.convolved(mod, name, from, small)
	tape.drop(from.value)
	return out
}
