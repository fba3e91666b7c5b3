package ops

import "github.com/devmap-dev/devmap/modelgraph"

// feedForward is a frozen MLP: its linear layers with their adapters, and
// which of its factors takes a gradient.
type feedForward struct {
	op             modelgraph.MLP
	s              *Shape
	gate, up, down linearLayer
	gates, ups     bool
	e, act         int64 // bytes an element; tensors that the activation keeps
	fN             int64 // bytes of a tensor of the hidden width
}

func newFeedForward(op modelgraph.MLP, s *Shape) feedForward {
	f := feedForward{op: op, s: s, e: s.wide(), act: activationExtra(op.Activation)}
	f.fN = f.e * op.Hidden * s.Tokens
	f.gate = linearLayer{in: op.Dim, out: op.Hidden}
	f.up, f.down = f.gate, linearLayer{in: op.Hidden, out: op.Dim, residual: true, shared: s.keepsInputs()}
	inputs, output := s.adapters()
	f.down.adapter = output
	for _, a := range inputs {
		if a.Up {
			f.up.adapter, f.up.shared = a, f.gate.adapter != nil
		} else {
			f.gate.adapter = a
		}
	}
	if op.Gated && op.Fused {
		f.gate.out = 2 * op.Hidden
	}
	f.gates = s.InputGrad || f.gate.adapter != nil
	f.ups = op.Gated && (s.InputGrad || f.up.adapter != nil || op.Fused && f.gates)
	return f
}

// frozenMLP keeps the gate, and activation and up, each where the other factor
// of their product takes a gradient; the product is kept by adapters alone.
func (c *Cost) frozenMLP(op modelgraph.MLP, s *Shape) {
	f := newFeedForward(op, s)
	c.Step.Saved = f.saved()
	c.Step.Forward = 0
	stream := s.r() * op.Dim * s.Tokens
	forward := tape{s: s, e: f.e, now: 2*stream + f.e*op.Dim*s.Tokens, see: func(m moment) { c.Step.Forward = max(c.Step.Forward, m.activations) }}
	f.forward(&forward)
	c.Waiting = forward.waiting(f.down)
	f.backward(&tape{s: s, e: f.e, now: stream, see: func(m moment) { c.peak(m) }})
}

func (f *feedForward) saved() int64 {
	s := f.s
	n := s.kept(f.down.shared) + s.casts(0, 0, s.Weights)
	if f.gates {
		n += f.act * f.fN
		if f.op.Gated {
			n += f.fN // up, for the activation's gradient
		}
	}
	if f.ups {
		n += f.fN
	}
	if s.keepsInputs() {
		n += f.fN // of down
	}
	if f.op.Dropout {
		n += f.op.Dim * s.Tokens
	}
	return n
}

func (f *feedForward) forward(t *tape) {
	t.forward(f.gate)
	if f.op.Gated {
		t.add(f.fN) // the activation
		if !f.op.Fused {
			t.forward(f.up)
		}
		t.add(f.fN) // the product
	} else {
		t.add(f.act * f.fN)
	}
	if f.s.Recompute {
		t.stop(f.down)
	} else {
		t.forward(f.down)
	}
}

func (f *feedForward) backward(t *tape) {
	t.backward(f.down, f.e)
	if !f.gates && !f.ups {
		return
	}
	if f.op.Gated {
		t.add(2 * f.fN)
		t.drop(3 * f.fN) // the product's gradient, up and activation
	}
	if f.op.Gated && !f.op.Fused {
		t.backward(f.up, f.s.r())
	}
	t.add(f.fN)
	t.drop((1 + f.act) * f.fN)
	if f.op.Fused {
		t.add(2 * f.fN) // the halves' gradients are joined
		t.drop(2 * f.fN)
	}
	t.backward(f.gate, f.s.r())
}
