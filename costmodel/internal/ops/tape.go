package ops

// tape follows the allocations of a frozen op with adapters in the order in
// which they happen: what is alive, and the adapters' gradients.
type tape struct {
	s          *Shape
	e          int64 // bytes an element of the linear layers' outputs
	now, grads int64
	see        func(moment)
}

func (t *tape) add(n int64)  { t.now += n; t.see(moment{t.now, t.grads, 0}) }
func (t *tape) drop(n int64) { t.now -= n }

// turn makes a tensor of another type of one that goes.
func (t *tape) turn(from, to int64) {
	if from != to {
		t.add(to)
		t.drop(from)
	}
}

// grad makes the gradient of one matrix, beside n new bytes.
func (t *tape) grad(n, matrix int64) {
	t.now += n
	t.grads += matrix
	t.see(moment{t.now, t.grads, matrix})
}

// linearLayer is a frozen linear layer and its adapter, or nil.
type linearLayer struct {
	in, out int64
	adapter *Adapter
	// shared: something else keeps the input. residual: the output joins the
	// residual stream.
	shared, residual bool
}

// forward runs base, A, B, "* scaling", their sum, which has the wider type,
// and the cast back (peft/tuners/lora/layer.py, Linear.forward; bnb.py casts
// before the sum). The output stays, and what the adapter keeps.
func (t *tape) forward(l linearLayer) {
	s := t.s
	e, ab, n := t.e, s.ab(), s.Tokens
	work := s.quantForward(l.in, l.out, e)
	t.add(e*l.out*n + work)
	t.drop(work)
	if l.adapter == nil {
		return
	}
	t.add(s.input(l.adapter, l.shared) + s.inner(l.adapter))
	t.add(2 * ab * l.out * n) // B's output, and the scaled one
	t.drop(ab * l.out * n)
	if s.Quantize != "" {
		t.turn(ab*l.out*n, e*l.out*n)
		ab = e
	}
	sum := max(e, ab)
	t.add(sum * l.out * n)
	t.drop((e + ab) * l.out * n)
	t.turn(sum*l.out*n, e*l.out*n)
}

// stop runs the last linear layer of a block again, as far as something is
// kept: its adapter's input and A's output; without one, its weight.
func (t *tape) stop(l linearLayer) {
	if l.adapter == nil {
		return
	}
	s := t.s
	t.add(t.e*l.out*s.Tokens + s.input(l.adapter, l.shared) + s.inner(l.adapter))
}

// waiting is what backward of a block's last linear layer holds, besides its
// output's gradient, when it needs the first tensor that was not kept: the
// scaled gradient for B's weight and the base's 16-bit one. A 4-bit weight is
// an attribute of its node, so that without an adapter the input's gradient is
// made first.
func (t *tape) waiting(l linearLayer) int64 {
	s, e, n := t.s, t.e, t.s.Tokens
	switch {
	case l.adapter != nil && s.converts() && s.Quantize == "":
		return (s.ab() + e) * l.out * n
	case l.adapter != nil:
		return s.ab() * l.out * n
	case s.Quantize != "":
		return e * l.in * n
	}
	return 0
}

// backward goes back through a linear layer. The gradient of its output is
// alive, and goes unless the residual stream has it too; that of its input,
// of x bytes an element, stays.
func (t *tape) backward(l linearLayer, x int64) {
	s := t.s
	e, n := t.e, s.Tokens
	if l.residual && s.r() != e { // autocast: a cast of the stream's gradient
		t.add(e * l.out * n)
		l.residual = false
	}
	if l.adapter != nil {
		l.residual = t.adapter(&l, x)
	}
	work := s.quantBackward(l.in, l.out, e)
	t.add(e*l.in*n + work)
	t.drop(work)
	if !l.residual {
		t.drop(e * l.out * n)
	}
	t.turn(e*l.in*n, x*l.in*n)
	if l.adapter != nil {
		t.drop(x * l.in * n) // added to the adapter's, in place
	}
}

// adapter goes back through the sum, the scaling, B, A and the input's cast,
// and reports whether the base shares its output's gradient with the residual
// stream. Where the sum is fp32, the base gets a 16-bit copy of its gradient
// (torch/csrc/autograd/engine.cpp, validate_outputs).
func (t *tape) adapter(l *linearLayer, x int64) bool {
	s, a := t.s, l.adapter
	e, ab, n := t.e, s.ab(), s.Tokens
	convert, residual := e != ab, l.residual
	if convert {
		t.add(ab * l.out * n)
		if s.Quantize == "" {
			if !residual {
				t.drop(e * l.out * n)
			}
			t.add(e * l.out * n)
			residual = false
		}
	}
	t.add(ab * l.out * n) // gradient * scaling
	if convert {
		t.drop(ab * l.out * n)
	}
	inner := ab * a.Rank * n
	t.grad(inner, s.gradBytes()*l.out*a.Rank)
	t.drop(ab*l.out*n + s.inner(a))
	t.grad(ab*l.in*n, s.gradBytes()*l.in*a.Rank)
	t.drop(inner + s.input(a, l.shared))
	t.turn(ab*l.in*n, x*l.in*n)
	return residual
}
