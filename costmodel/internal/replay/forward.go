package replay

// Forward runs the model's forward and returns its backward. Saved tensors are then alive.
func (model *Model) Forward(run *Run, hooks Hooks) func() {
	step := &Step{Run: run, Model: model, Hooks: hooks, saving: true}
	return step.forward()
}

// Infer runs a forward without gradients; logits, keys and values stay for one after tokens.
func (model *Model) Infer(run *Run, hooks Hooks, tokens int64) {
	if run.cached == nil {
		run.cached = make(map[*Attention][2]*Tensor)
	}
	step := &Step{Run: run, Model: model, Hooks: hooks, infers: true}
	step.forward()
	run.Drop(step.positions, step.sines)
	run.past += tokens
}

func (step *Step) forward() func() {
	run, model, hooks := step.Run, step.Model, step.Hooks
	x, inputs := step.embed()
	if !model.Copies {
		var sent *Tensor
		if model.Sent { // hooks.py, AlignDevicesHook.pre_forward moves all arguments
			sent = step.New(step.stream())
		}
		step.rotary()
		step.Drop(sent)
	}
	var backs []back
	for i := range model.Blocks {
		hooks.Block(i, false, false)
		x = step.arrive(x, model.Blocks[i].Arrives)
		out, after := step.block(&model.Blocks[i], x)
		hooks.Block(i, true, false)
		x = out
		backs = append(backs, after)
	}
	x = step.arrive(x, model.EndArrives)
	x, after := step.end(x, inputs)
	if model.Passes {
		run.through(model.Copied)
	} else {
		run.Outputs = append(run.Outputs, run.New(model.Copied))
	}
	return func() {
		if !model.EndArrives {
			unsend(step, len(backs))
		}
		grad := after(x)
		unsend(step, len(backs))
		grad = step.arrive(grad, model.EndArrives)
		for i := len(backs) - 1; i >= 0; i-- {
			hooks.Block(i, false, true)
			grad = backs[i](grad)
			unsend(step, i)
			grad = step.arrive(grad, model.Blocks[i].Arrives)
			hooks.Block(i, true, true)
		}
		step.embeddingBack(model.Embedding.enrichedBack(step, grad))
		run.Drop(step.positions, step.sines)
	}
}

// unsend drops what the embedding sent to recomputed blocks if none is left here: its gradient is next.
func unsend(step *Step, left int) {
	if left == 0 {
		step.Drop(step.sent)
		step.sent = nil
	}
}

// arrive is a tensor that another device sends, in place of the last one here.
func (step *Step) arrive(x *Tensor, arrives bool) *Tensor {
	if !arrives {
		return x
	}
	step.Drop(x)
	return step.New(step.stream())
}

// embed is the embedding's output, and once more as a variable of the model's
// forward; nil on a device without the embedding.
func (step *Step) embed() (x, inputs *Tensor) {
	op := &step.Embedding
	if op.Weight == nil {
		step.grads = true
		return nil, nil
	}
	step.grads = op.Weight.Trained || step.Recompute
	step.Enter(op.Index, "", false)
	x = step.New(op.width(step) * step.Tokens * step.Element)
	step.Leave(op.Index, "", false)
	if op.Leaves && step.Recompute && step.saving { // another device's block keeps its input here
		step.sent = x.Keep()
	}
	if op.enriched() {
		return op.enrich(step, x)
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
	wave := func() *Tensor { // times attention_scaling
		if step.Early {
			return step.New(4 * count)
		}
		unscaled := step.New(4 * count)
		scaled := step.New(4 * count)
		step.Drop(unscaled)
		return scaled
	}
	cosine, sine := wave(), wave()
	step.positions = step.New(step.Element * count)
	second := step.New(step.Element * count)
	step.Drop(frequencies, both, cosine, sine)
	step.sines = second
}

// block adds each half's output to its input. A recomputed block keeps only its input, and reruns
// when its backward asks for the first tensor.
func (step *Step) block(block *Block, x *Tensor) (*Tensor, back) {
	if !step.Recompute {
		return step.halves(block, x)
	}
	in := x // the sender keeps what arrives, and sends it again
	if !block.Arrives {
		in.Keep()
	}
	step.saving = false
	y, _ := step.halves(block, x)
	step.saving = true
	var sent *Tensor
	if block.Leaves {
		sent = y.Keep()
	}
	return y, func(grad *Tensor) *Tensor {
		step.Drop(sent)
		if block.Arrives {
			in = step.New(step.stream())
		}
		step.recomputed = true
		wait(step, block, grad)
		if !block.Arrives && !step.Early {
			step.input = in.Keep()
		}
		_, after := step.halves(block, in)
		step.recomputed = false
		grad = after(grad)
		step.release()
		return grad
	}
}

// wait makes the gradients of a recomputed block's last linear layer before it asks for the first
// tensor. These are an adapter's scaled gradient, and the sum's in the layer's own type
// (peft/tuners/lora/layer.py, Linear.forward: result + B(A(x)) · scaling).
func wait(step *Step, block *Block, grad *Tensor) {
	mlp, ok := block.Halves[1].Body.(*MLP)
	if !ok || mlp.Down.Rank == 0 || step.Early {
		return
	}
	step.scaled, step.base = step.scale(mlp.Down, grad.Keep())
}

// release ends the input of a recomputed block. Its hooks hold it as long as a node of
// the block has saved tensors (torch/utils/checkpoint.py, _checkpoint_hook).
func (step *Step) release() {
	step.Drop(step.input)
	step.input = nil
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
	y, addBack := step.add(half, made, x, again && last)
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
		step.first = !last
		inner = normBack(inner)
		step.first = false
		if !reached {
			step.Drop(residual, inner)
			return nil
		}
		return step.sum(step.stream(), residual, inner)
	}
}

// embeddingBack makes the table's dense gradient. From 3072 tokens on it sorts them and adds
// partial sums in fp32 (Embedding.cu, embedding_dense_backward_cuda).
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
	op.tablesBack(step)
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
