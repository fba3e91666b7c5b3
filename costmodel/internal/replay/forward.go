package replay

// Forward runs the model's forward and returns its backward. Tensors kept for
// backward are alive when it returns.
func (model *Model) Forward(run *Run, hooks Hooks) func() {
	step := &Step{Run: run, Model: model, Hooks: hooks, saving: !model.Infer}
	x, inputs := step.embed()
	if !model.Copies {
		step.rotary()
	}
	var backs []back
	for i := range model.Blocks {
		hooks.Block(i, false, false)
		out, after := step.block(&model.Blocks[i], x)
		hooks.Block(i, true, false)
		x = out
		backs = append(backs, after)
	}
	x, after := step.end(x, inputs)
	run.Outputs = append(run.Outputs, run.New(model.Copied))
	return func() {
		grad := after(x)
		for i := len(backs) - 1; i >= 0; i-- {
			hooks.Block(i, false, true)
			grad = backs[i](grad)
			hooks.Block(i, true, true)
		}
		step.embeddingBack(step.enrichedBack(grad))
		run.Drop(step.positions, step.sines)
	}
}

// embed is the embedding's output, or a copy of what another device made, and
// once more as a variable of the model's forward.
func (step *Step) embed() (x, inputs *Tensor) {
	op := &step.Embedding
	if op.Weight == nil {
		step.grads = true
		return step.New(step.stream()), nil
	}
	step.grads = op.Weight.Trained || step.Recompute
	step.Enter(op.Index, "", false)
	x = step.New(op.width(step) * step.Tokens * step.Element)
	step.Leave(op.Index, "", false)
	if op.enriched() {
		return step.enrich(x)
	}
	inputs = x.Keep()
	if op.Scaled {
		scaled := step.New(step.stream())
		step.Drop(x)
		x = scaled
	}
	return x, inputs
}

// end is the last normalisation and the head, if the device has them; what goes
// to another device comes back as a gradient from there.
func (step *Step) end(x, inputs *Tensor) (*Tensor, back) {
	var normBack, headBack back
	if step.Norm.Weight != nil {
		x, normBack = step.Norm.forward(step, step.NormIndex, x)
	}
	step.Drop(inputs)
	if step.Head.Linear != nil {
		x, headBack = step.Head.forward(step, step.HeadIndex, x)
	} else {
		step.Drop(x)
		x = nil
		headBack = func(*Tensor) *Tensor { return step.New(step.stream()) }
	}
	return x, func(grad *Tensor) *Tensor {
		grad = headBack(grad)
		if normBack != nil {
			grad = normBack(grad)
		}
		return grad
	}
}

// rotary makes cosines and sines, which every block reads and keeps
// (LlamaRotaryEmbedding.forward: all in fp32, then the cast).
func (step *Step) rotary() {
	count := step.Rotary
	frequencies := step.New(2 * count) // [length, head/2] in fp32, a product
	step.product(0)
	both := step.New(4 * count)
	cosine := step.New(4 * count)
	sine := step.New(4 * count)
	step.positions = step.New(step.Element * count)
	second := step.New(step.Element * count)
	step.Drop(frequencies, both, cosine, sine)
	step.sines = second
}

// block adds each half's output to what it read. A recomputed one keeps its
// input alone, and runs again when its backward asks for the first tensor.
func (step *Step) block(block *Block, x *Tensor) (*Tensor, back) {
	if !step.Recompute {
		return step.halves(block, x)
	}
	in := x.Keep()
	step.saving = false
	y, _ := step.halves(block, x)
	step.saving = true
	return y, func(grad *Tensor) *Tensor {
		step.recomputed = true
		_, after := step.halves(block, in)
		step.recomputed = false
		return after(grad)
	}
}

func (step *Step) halves(block *Block, x *Tensor) (*Tensor, back) {
	in := x.Keep() // the caller's variable, until the block returns
	if step.Copies {
		cosine, sine := step.New(step.Rotary*step.Element), step.New(step.Rotary*step.Element)
		y, after := step.twoHalves(block, x, in)
		if !step.saving {
			step.Drop(cosine, sine)
		}
		return y, func(grad *Tensor) *Tensor {
			grad = after(grad)
			step.Drop(cosine, sine)
			return grad
		}
	}
	return step.twoHalves(block, x, in)
}

func (step *Step) twoHalves(block *Block, x, in *Tensor) (*Tensor, back) {
	if block.Halves[1].Body == nil {
		y, after := step.half(&block.Halves[0], x, true)
		step.Drop(in)
		return y, after
	}
	first, firstBack := step.half(&block.Halves[0], x, false)
	y, secondBack := step.half(&block.Halves[1], first, true)
	step.Drop(in)
	return y, func(grad *Tensor) *Tensor { return firstBack(secondBack(grad)) }
}

// half is x + body(norm(x)), or what its other norms make of that.
func (step *Step) half(half *Half, x *Tensor, last bool) (*Tensor, back) {
	reached := step.grads
	normed, normBack := x.Keep(), back(func(grad *Tensor) *Tensor { return grad })
	if half.Norm != nil {
		normed, normBack = half.Norm.forward(step, half.NormIndex, normed)
	}
	again := step.recomputed
	step.recomputed = again && last && half.After == nil && !half.Dropout
	made, bodyBack := half.Body.forward(step, half.BodyIndex, normed)
	step.recomputed = again
	y, addBack := step.add(half, made, x)
	return y, func(grad *Tensor) *Tensor {
		residual, inner := addBack(grad)
		inner = bodyBack(inner)
		if inner == nil {
			if !reached {
				step.Drop(residual)
				return nil
			}
			return residual
		}
		if !reached {
			step.Drop(residual, normBack(inner))
			return nil
		}
		return step.sum(step.stream(), residual, normBack(inner))
	}
}

// embeddingBack makes the table's dense gradient. From 3072 tokens on it sorts
// them and adds partial sums in fp32 (Embedding.cu,
// embedding_dense_backward_cuda).
func (step *Step) embeddingBack(grad *Tensor) {
	op := &step.Embedding
	if op.Weight != nil {
		step.Enter(op.Index, "", true)
		defer step.Leave(op.Index, "", true)
	}
	if op.Weight == nil || !op.Weight.Trained {
		step.Drop(grad)
		return
	}
	weight := step.New(op.Weight.Numel * step.Element)
	if step.Tokens > 3072 {
		step.through(4*step.Width*(step.Tokens/10+min(step.Tokens, op.Vocab)) + 24*step.Tokens)
	}
	step.Drop(grad)
	step.tablesBack()
	if step.tied != nil {
		if step.NewSums {
			sum := step.New(op.Weight.Numel * step.Element)
			step.Drop(weight)
			weight, step.tied = step.tied, sum
		}
		step.Drop(weight)
		weight, step.tied = step.tied, nil
	}
	step.made(op.Weight, weight)
}
