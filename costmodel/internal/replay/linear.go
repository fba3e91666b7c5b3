package replay

// linear is y = x·Wᵀ + b (AddmmBackward0, MmBackward0), with an adapter
// y + scale·B(A(x)) (peft/tuners/lora/layer.py, Linear.forward).
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
	var adapted func(*Tensor) *Tensor
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

// adapter adds that of a linear layer to its output, which there is none of
// where recomputation stops at the last tensor that is kept.
func (step *Step) adapter(op *Linear, x, y *Tensor, last bool) (*Tensor, func(*Tensor) *Tensor) {
	element, each, tokens := step.Element, step.Adapter, step.Tokens
	cast := x.Keep()
	if each != element { // x.to(adapter's type)
		step.Drop(cast)
		cast = step.New(op.In * tokens * each)
	}
	inner := step.New(op.Rank * tokens * each)
	retainedIn, retainedInner := step.save(cast), step.save(inner)
	backward := func(grad *Tensor) *Tensor { return step.adapterBack(op, grad, retainedIn, retainedInner) }
	if last {
		step.Drop(y, cast, inner)
		return nil, backward
	}
	outer := step.New(op.Out * tokens * each)
	step.Drop(cast, inner)
	scaled := step.New(op.Out * tokens * each)
	step.Drop(outer)
	sum := step.New(op.Out * tokens * max(each, element))
	step.Drop(y, scaled)
	if each != element { // result.to(type of the base's)
		wide := sum
		sum = step.New(op.Out * tokens * element)
		step.Drop(wide)
	}
	return sum, backward
}

// adapterBack takes no hold on the gradient of the sum, and gives the input's.
func (step *Step) adapterBack(op *Linear, grad, retainedIn, retainedInner *Tensor) *Tensor {
	element, each, tokens := step.Element, step.Adapter, step.Tokens
	wide := grad.Keep()
	if each != element {
		step.Drop(wide)
		wide = step.New(op.Out * tokens * each)
	}
	scaled := step.New(op.Out * tokens * each)
	step.Drop(wide)
	up := step.New(op.Out * op.Rank * each)
	inner := step.New(op.Rank * tokens * each)
	step.Drop(scaled, retainedInner)
	step.made(op.Up, up)
	down := step.New(op.In * op.Rank * each)
	in := step.New(op.In * tokens * each)
	step.Drop(inner, retainedIn)
	step.made(op.Down, down)
	if each != element {
		narrow := step.New(op.In * tokens * element)
		step.Drop(in)
		in = narrow
	}
	return in
}

// linearBack is the backward of a linear layer whose input's gradient is asked
// for or not.
func (step *Step) linearBack(op *Linear, layer int, retained *Tensor, adapted func(*Tensor) *Tensor, reached bool) back {
	return func(grad *Tensor) *Tensor {
		step.Enter(layer, op.Module, true)
		var more *Tensor
		if adapted != nil {
			more = adapted(grad)
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

// products makes the gradients of a linear layer's input, if it is asked for,
// and of its trained weight and bias: the input's last, or first
// ([Model.InputFirst]); the bias's last.
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
