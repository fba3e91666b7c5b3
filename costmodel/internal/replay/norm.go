package replay

// Norm is RMSNorm as modeling_llama.py has it (LlamaRMSNorm.forward), or if Fused torch.nn.LayerNorm.
type Norm struct {
	Width        int64
	Rows         int64 // values of 1/σ a token; 1
	Weight, Bias *Weight
	Fused        bool
	Gemma        bool // (1 + weight) · x, all in fp32
	// Parts is the workspace of the weight's gradient's sum (Reduce.cuh).
	Parts int64
}

func (op *Norm) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	return op.within(step, layer, "", x)
}

// within is the normalisation as a module of a layer.
func (op *Norm) within(step *Step, layer int, module string, x *Tensor) (*Tensor, back) {
	step.Enter(layer, module, false)
	var y *Tensor
	var after back
	if op.Fused {
		y, after = op.layerNorm(step, x)
	} else {
		y, after = op.rms(step, x)
	}
	step.Leave(layer, module, false)
	return y, func(grad *Tensor) *Tensor {
		step.Enter(layer, module, true)
		defer step.Leave(layer, module, true)
		return after(grad)
	}
}

func (op *Norm) layerNorm(step *Step, x *Tensor) (*Tensor, back) {
	size := op.Width * step.Tokens * step.Element
	y, mean, deviation := step.New(size), step.New(4*step.Tokens), step.New(4*step.Tokens)
	retained := []*Tensor{step.save(x), step.save(mean), step.save(deviation)}
	step.Drop(x, mean, deviation)
	return y, func(grad *Tensor) *Tensor {
		in := step.New(size)
		var weight, bias *Tensor
		if op.Weight.Trained {
			weight = step.New(op.Width * step.Element)
			if op.Bias != nil {
				bias = step.New(op.Width * step.Element)
			}
		}
		step.Drop(grad)
		step.Drop(retained...)
		if op.Weight.Trained {
			step.made(op.Weight, weight)
			if bias != nil {
				step.made(op.Bias, bias)
			}
		}
		return in
	}
}

// rms makes x in fp32, x², its mean and 1/σ, the product, its cast back, and that times the weight.
func (op *Norm) rms(step *Step, x *Tensor) (*Tensor, back) {
	count := op.Width * step.Tokens
	size, wide, row := count*step.Element, 4*count, 4*op.Rows*step.Tokens
	x32 := step.wide(x, wide)
	square := step.New(wide)
	mean := step.New(row)
	step.Drop(square)
	sum := step.New(row)
	root := step.New(row)
	step.Drop(sum)
	normed32 := step.New(wide)
	retained32, retainedRoot := step.save(x32), step.save(root)
	step.Drop(x32, root)
	normed := normed32.Keep()
	if step.Element < 4 && !op.Gemma {
		step.Drop(normed)
		normed = step.New(size)
	}
	var savedNormed, factor *Tensor
	if op.Gemma {
		factor = step.New(4 * op.Width)
	}
	if op.Weight.Trained {
		savedNormed = step.save(normed)
	}
	if step.ends { // everything kept exists
		step.Drop(normed, normed32, mean, x, factor)
		return nil, func(grad *Tensor) *Tensor { return op.rmsBack(step, grad, retained32, retainedRoot, savedNormed) }
	}
	y := step.New(size)
	if op.Gemma {
		step.Drop(y)
		y = step.New(4 * count)
		narrow := step.New(size)
		step.Drop(y)
		y = narrow
	}
	step.Drop(normed, normed32, mean, x, factor)
	return y, func(grad *Tensor) *Tensor { return op.rmsBack(step, grad, retained32, retainedRoot, savedNormed) }
}

// wide is a tensor in fp32, of so many bytes.
func (step *Step) wide(x *Tensor, bytes int64) *Tensor {
	if step.Element < 4 {
		return step.New(bytes)
	}
	return x.Keep()
}

// rmsBack goes back through the product with the weight, the cast, the product
// with 1/σ, rsqrt, mean, pow, and the first cast.
func (op *Norm) rmsBack(step *Step, grad, retained32, root, normed *Tensor) *Tensor {
	count := op.Width * step.Tokens
	size, wide, row := count*step.Element, 4*count, 4*op.Rows*step.Tokens
	inner := step.New(size)
	if op.Gemma {
		step.Drop(inner)
		inner = step.New(wide)
	}
	if op.Weight.Trained {
		full := step.New(size)
		weight := step.New(op.Weight.Numel * step.Element)
		step.through(op.Parts)
		step.Drop(full, grad, normed)
		step.made(op.Weight, weight)
	} else {
		step.Drop(grad, normed)
	}
	if step.Element < 4 && !op.Gemma {
		inner32 := step.New(wide)
		step.Drop(inner)
		inner = inner32
	}
	in := step.New(wide)
	full := step.New(wide)
	reduced := step.New(row)
	step.Drop(full, inner)
	cube, half := step.New(row), step.New(row)
	rootGrad := step.New(row)
	step.Drop(cube, half, reduced, root)
	mean := step.New(wide)
	step.Drop(rootGrad)
	power, twice := step.New(wide), step.New(wide)
	squared := step.New(wide)
	step.Drop(power, twice, mean, retained32)
	if step.first { // nothing of the block is saved any more
		step.release()
	}
	in = step.sum(wide, in, squared)
	if step.Element == 4 {
		return in
	}
	out := step.New(size)
	step.Drop(in)
	return out
}
