package replay

// MLP is down(act(gate(x)) · up(x)), as LlamaMLP of modeling_llama.py. Without Up it is
// fc2(act(fc1(x))). Fused has gate and up in one matrix (modeling_phi3.py, Phi3MLP).
type MLP struct {
	Hidden         int64
	Gate, Up, Down *Linear
	Fused          bool
	Extra          int64 // tensors that the activation keeps in addition to its input
	KeepsResult    bool  // for its backward, not its input (relu)
}

func (op *MLP) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	size := op.Hidden * step.Tokens * step.Element
	gate, gateBack := step.linear(op.Gate, layer, x, false)
	gates := step.grads
	factors, act := op.activate(step, size)
	retainedGate := step.save(gate)
	if op.KeepsResult {
		step.Drop(retainedGate)
		retainedGate = step.save(act)
	}
	if !op.Fused {
		step.Drop(gate) // a temporary of the call
	}
	up, upBack := (*Tensor)(nil), back(nil)
	if op.Up != nil {
		up, upBack = step.linear(op.Up, layer, x, false)
	} else if op.Fused {
		up = gate.Keep()
	}
	if step.Early {
		step.Drop(x)
		x = nil
	}
	product := act
	var savedAct, savedUp *Tensor
	if up != nil {
		product = step.New(size)
		savedAct, savedUp = step.save(act), step.save(up)
		step.Drop(act, up)
	}
	if op.Fused { // its halves are variables of the forward
		defer step.Drop(gate)
	}
	if !gates { // nothing before is trained
		step.Drop(retainedGate, savedAct, savedUp)
		retainedGate, savedAct, savedUp = nil, nil, nil
	}
	y, downBack := step.linear(op.Down, layer, product, step.recomputed)
	step.Drop(product, x)
	if y != nil {
		step.Leave(layer, "", false)
	}
	return y, func(grad *Tensor) *Tensor {
		step.Enter(layer, "", true)
		defer step.Leave(layer, "", true)
		defer step.Drop(factors...)
		return op.backward(step, grad, downBack, upBack, gateBack, savedAct, savedUp, retainedGate)
	}
}

// activate is the activation's result, and its kept tensors. Three are those of activations.py,
// NewGELUActivation: x/2, tanh and 1 + tanh.
func (op *MLP) activate(step *Step, size int64) (factors []*Tensor, act *Tensor) {
	if op.Extra != 3 {
		var made []*Tensor
		for k := range op.Extra {
			made = append(made, step.New(size))
			factors = append(factors, step.save(made[k]))
		}
		act = step.New(size)
		step.Drop(made...)
		return factors, act
	}
	half, inner := step.New(size), step.New(size) // x³
	for range 3 {                                 // its product, the sum with x, and that's product
		next := step.New(size)
		step.Drop(inner)
		inner = next
	}
	tanh := step.New(size)
	step.Drop(inner)
	sum := step.New(size)
	factors = []*Tensor{step.save(half), step.save(tanh), step.save(sum)}
	step.Drop(tanh)
	act = step.New(size)
	step.Drop(half, sum)
	return factors, act
}

func (op *MLP) backward(step *Step, grad *Tensor, downBack, upBack, gateBack back, retainedAct, retainedUp, retainedGate *Tensor) *Tensor {
	size := op.Hidden * step.Tokens * step.Element
	inner := downBack(grad)
	if inner == nil {
		return nil
	}
	actGrad := inner
	var in *Tensor
	var upGrad *Tensor
	if retainedUp != nil {
		upGrad, actGrad = step.New(size), step.New(size)
		step.Drop(inner, retainedUp, retainedAct)
	}
	if upBack != nil {
		in = upBack(upGrad)
	}
	gateGrad := step.New(size)
	step.Drop(actGrad, retainedGate)
	if op.Fused { // the halves' gradients are joined
		joined := step.New(2 * size)
		step.Drop(gateGrad, upGrad)
		gateGrad = joined
	}
	first := gateBack(gateGrad)
	switch {
	case in == nil:
		return first
	case first == nil:
		return in
	}
	return step.sum(step.stream(), in, first)
}
