package replay

// linear is y = x·Wᵀ + b (AddmmBackward0, MmBackward0). An adapter adds its scaled product
// (peft/tuners/lora/layer.py, Linear.forward).
func (step *Step) linear(op *Linear, layer int, x *Tensor, last bool) (*Tensor, back) {
	step.Enter(layer, op.Module, false)
	element, tokens := step.Element, step.Tokens
	reached := step.grads
	var saved *Tensor
	if op.Weight.Trained || step.KeepsInputs && reached {
		saved = step.save(x)
	}
	if last && op.Rank == 0 { // recomputation stops when every kept tensor exists
		return nil, step.linearBack(op, layer, saved, nil, reached)
	}
	y := step.New(op.Out * tokens * element)
	step.product(0)
	var adapted func(*Tensor) (in, base *Tensor)
	if op.Rank > 0 {
		y, adapted = step.adapter(op, x, y, last)
		step.grads = true
	}
	if y == nil {
		return nil, step.linearBack(op, layer, saved, adapted, reached)
	}
	step.Leave(layer, op.Module, false)
	return y, step.linearBack(op, layer, saved, adapted, reached)
}

// adapter adds an adapter's output; none if recomputation stops at the last kept tensor.
func (step *Step) adapter(op *Linear, x, y *Tensor, last bool) (*Tensor, func(*Tensor) (in, base *Tensor)) {
	element, each, tokens := step.Element, step.Adapter, step.Tokens
	cast := x.Keep()
	if each != element { // x.to(adapter's type)
		step.Drop(cast)
		cast = step.New(op.In * tokens * each)
	}
	inner := step.New(op.Rank * tokens * each)
	retainedIn, retainedInner := step.save(cast), step.save(inner)
	backward := func(grad *Tensor) (in, base *Tensor) { return step.adapterBack(op, grad, retainedIn, retainedInner) }
	if last {
		step.Drop(y, cast, inner)
		return nil, backward
	}
	outer := step.New(op.Out * tokens * each)
	step.Drop(inner)
	if step.Early {
		step.Drop(cast)
		cast = nil
	}
	scaled := step.New(op.Out * tokens * each)
	step.Drop(outer)
	sum := step.New(op.Out * tokens * max(each, element))
	step.Drop(y, scaled)
	if each != element { // result.to(type of the base's)
		wide := sum
		sum = step.New(op.Out * tokens * element)
		step.Drop(wide)
	}
	step.Drop(cast)
	return sum, backward
}

// adapterBack returns the gradient of the adapter's input, and of the linear layer's own output:
// grad, or a copy in its type.
func (step *Step) adapterBack(op *Linear, grad, retainedIn, retainedInner *Tensor) (in, base *Tensor) {
	element, each, tokens := step.Element, step.Adapter, step.Tokens
	scaled, base := step.scaled, step.base
	step.scaled, step.base = nil, nil
	if scaled == nil {
		scaled, base = step.scale(op, grad)
	} else { // they were made before the block ran again
		step.Drop(grad)
	}
	up := step.New(op.Out * op.Rank * each)
	inner := step.New(op.Rank * tokens * each)
	step.Drop(scaled, retainedInner)
	step.made(op.Up, up)
	down := step.New(op.In * op.Rank * each)
	in = step.New(op.In * tokens * each)
	step.Drop(inner, retainedIn)
	step.made(op.Down, down)
	if each != element {
		narrow := step.New(op.In * tokens * element)
		step.Drop(in)
		in = narrow
	}
	return in, base
}

// scale makes the gradient of an adapter's output before its scaling, and of the linear layer's own
// output: grad, or a copy if types differ (the sum's backward casts twice).
func (step *Step) scale(op *Linear, grad *Tensor) (scaled, base *Tensor) {
	count := op.Out * step.Tokens
	wide, base := grad.Keep(), grad
	if step.Adapter != step.Element {
		step.Drop(wide)
		wide = step.New(count * step.Adapter)
		if !step.Early {
			step.Drop(grad)
			base = step.New(count * step.Element)
		}
	}
	scaled = step.New(count * step.Adapter)
	step.Drop(wide)
	return scaled, base
}

// linearBack is the backward of a linear layer, with its input's gradient if needed.
func (step *Step) linearBack(op *Linear, layer int, retained *Tensor, adapted func(*Tensor) (in, base *Tensor), reached bool) back {
	return func(grad *Tensor) *Tensor {
		step.Enter(layer, op.Module, true)
		var more *Tensor
		if adapted != nil {
			more, grad = adapted(grad)
		}
		in, weight, bias := step.products(op, reached)
		step.Drop(grad, retained)
		if bias != nil {
			step.made(op.Bias, bias)
		}
		if weight != nil {
			step.made(op.Weight, weight)
		}
		step.Leave(layer, op.Module, true)
		if more != nil {
			in = step.sum(op.In*step.Tokens*step.Element, in, more)
		}
		if !reached {
			step.Drop(in)
			return nil
		}
		return in
	}
}

// products makes the gradients of a linear layer's input, if needed, and of its trained weight and
// bias: the input's last, or first ([Model.InputFirst]); the bias's last.
func (step *Step) products(op *Linear, reached bool) (in, weight, bias *Tensor) {
	input := func() {
		if reached {
			in = step.New(op.In * step.Tokens * step.Element)
			step.product(1)
		}
	}
	biases := func() {
		if op.Bias != nil && op.Bias.Trained {
			bias = step.New(op.Bias.Numel * step.Element)
			step.through(op.Parts)
		}
	}
	weights := func() {
		if op.Weight.Trained {
			weight = step.New(op.Weight.Numel * step.Element)
			step.product(1)
		}
	}
	order := []func(){weights, input, biases} // summed when the node has run (torch/csrc/autograd/engine.cpp, validate_outputs)
	if step.InputFirst {
		order = []func(){input, weights, biases}
	}
	for _, each := range order {
		each()
	}
	return in, weight, bias
}
