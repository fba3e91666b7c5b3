package ops

import "github.com/devmap-dev/devmap/modelgraph"

// frozenMLP keeps gate, activation and up, each where the other factor of
// its product takes a gradient; the product is kept by adapters alone.
func (c *Cost) frozenMLP(op modelgraph.MLP, s *Shape) {
	e, n := s.e(), s.Tokens
	fN, stream := e*op.Hidden*n, s.r()*op.Dim*n
	act := activationExtra(op.Activation)
	gate := linearLayer{in: op.Dim, out: op.Hidden}
	up, down := gate, linearLayer{in: op.Hidden, out: op.Dim, residual: true, shared: s.keepsInputs()}
	inputs, output := s.adapters()
	for _, a := range inputs {
		if a.Up {
			up.adapter, up.shared = a, gate.adapter != nil
		} else {
			gate.adapter = a
		}
	}
	down.adapter = output
	if op.Gated && op.Fused {
		gate.out = 2 * op.Hidden
	}
	gated := s.InputGrad || gate.adapter != nil // the gate takes a gradient
	upped := op.Gated && (s.InputGrad || up.adapter != nil || op.Fused && gated)
	var saved int64
	if gated {
		saved = act * fN
		if op.Gated {
			saved += fN
		}
	}
	if upped {
		saved += fN
	}
	c.Step.Saved = saved + s.kept(down.shared) + s.casts(0, 0, s.Weights)
	if s.keepsInputs() {
		c.Step.Saved += fN // of down
	}
	if op.Dropout {
		c.Step.Saved += op.Dim * n
	}

	c.Step.Forward = 0
	f := tape{s: s, now: 2*stream + e*op.Dim*n, see: c.forwardPeak}
	f.forward(gate)
	if !op.Gated {
		f.add(act * fN)
	} else {
		f.add(fN) // the activation
		if !op.Fused {
			f.forward(up)
		}
		f.add(fN) // the product
	}
	if s.Recompute {
		f.stop(down)
	} else {
		f.forward(down)
	}
	c.Waiting = s.waiting(down)

	b := tape{s: s, now: stream, see: func(m moment) { c.peak(m) }}
	b.backward(down, e)
	if !gated && !upped {
		return
	}
	if op.Gated {
		b.add(2 * fN)
		b.drop(3 * fN) // the product's gradient, up and activation
	}
	if op.Gated && !op.Fused {
		b.backward(up, s.r())
	}
	b.add(fN)
	b.drop((1 + act) * fN)
	if op.Fused {
		b.add(2 * fN) // the halves' gradients are joined
		b.drop(2 * fN)
	}
	b.backward(gate, s.r())
}

func (c *Cost) forwardPeak(m moment) { c.Step.Forward = max(c.Step.Forward, m.activations) }

// frozenAttention keeps what the kernel and the rotation need. The frozen
// norms on q and k keep no normalised tensor, a copy made for the output's
// projection is not kept.
func (c *Cost) frozenAttention(op modelgraph.Attention, s *Shape) {
	e, n := s.e(), s.Tokens
	g := geometry(op, s)
	inputs, output := s.adapters()
	work := c.Step.Forward // above what is there, with the trained op's tensors
	if op.Fused && op.Rope && g.by == flashKernel {
		c.Step.Saved -= e * n * g.out
	}
	if op.QKNorm == modelgraph.GemmaRMSNorm {
		c.Step.Saved -= 4 * n * (g.q + g.k)
	} else if op.QKNorm != "" {
		c.Step.Saved -= e * n * (g.q + g.k)
	}
	if op.LayerScale {
		c.Step.Saved -= s.r() * op.Dim * n
	}
	kernel := kernelSaved(op, &g, s)
	copied := g.by == scoresInMemory // only the projection's input is a copy of the output
	if copied {
		c.Step.Saved -= e * n * g.out
		kernel -= e * n * g.out
	}
	if !s.InputGrad && len(inputs) == 0 {
		c.Step.Saved, kernel = 0, 0
	}
	c.Step.Saved += s.kept(!copied)
	c.Step.Forward = max(work, 2*s.r()*op.Dim*n+e*op.Dim*n+c.Step.Saved) + s.work()

	b := tape{s: s, now: s.r() * op.Dim * n, see: func(m moment) { c.peak(m) }}
	b.backward(linearLayer{in: g.out, out: op.Dim, adapter: output, residual: true, shared: !copied}, e)
	if kernel == 0 {
		return
	}
	if grads := e*n*g.q + e*g.kvTokens*(g.k+g.v); g.by == scoresInMemory && e == 4 {
		b.add(4*g.scores + e*n*g.out)
		b.drop(2 * e * n * g.out) // the output's gradient; v, which made way for its own
		b.add(2 * 4 * g.scores)   // softmax's (SoftMax.cu: gradient × result, and the scores')
		b.drop(3*4*g.scores + e*n*g.out)
		b.drop(kernel - e*n*g.out)
		b.add(grads)
	} else {
		b.add(c.back - e*n*g.out)
		b.drop(c.back - grads) // those of q, k and v stay
		b.drop(kernel)
	}
	for i, a := range inputs {
		b.backward(linearLayer{in: a.In, out: a.Out, adapter: a, shared: i > 0}, s.r())
		if i > 0 {
			b.drop(s.r() * a.In * n) // added up in place
		}
	}
}
