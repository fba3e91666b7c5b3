package ops

import "github.com/devmap-dev/devmap/modelgraph"

// frozenAttention keeps what the kernel and the rotation need. The frozen
// norms on q and k keep no normalised tensor, a copy made for the output's
// projection is not kept.
func (c *Cost) frozenAttention(op modelgraph.Attention, s *Shape) {
	e, n := s.e(), s.Tokens
	g := geometry(op, s)
	inputs, output := s.adapters()
	work := c.Step.Forward // above what is there, with the trained op's tensors
	if op.QKNorm == modelgraph.GemmaRMSNorm {
		c.Step.Saved -= 4 * n * (g.q + g.k)
	} else if op.QKNorm != "" {
		c.Step.Saved -= e * n * (g.q + g.k)
	}
	if op.LayerScale {
		c.Step.Saved -= s.r() * op.Dim * n
	}
	kernel := kernelSaved(op, &g, s)
	// The projection reads a copy of the kernel's output, which only it keeps.
	copied := g.by == scoresInMemory || g.by == flashKernel && op.Fused && op.Rope
	if copied {
		c.Step.Saved -= e * n * g.out
		kernel -= e * n * g.out
	}
	if !s.InputGrad && len(inputs) == 0 {
		c.Step.Saved, kernel = 0, 0
	}
	c.Step.Saved += s.kept(!copied)
	c.Step.Forward = max(work, 2*s.r()*op.Dim*n+e*op.Dim*n+max(c.Step.Saved, s.quantInfer(op))) + s.work()

	b := tape{s: s, e: e, now: s.r() * op.Dim * n, see: func(m moment) { c.peak(m) }}
	b.backward(linearLayer{in: g.out, out: op.Dim, adapter: output, residual: true, shared: !copied}, e)
	if kernel == 0 {
		return
	}
	if grads := e*n*g.q + e*g.kvTokens*(g.k+g.v); g.by == scoresInMemory {
		cast := b.softmax(op, &g)
		b.drop(kernel - e*n*g.out - cast*g.scores)
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

// softmax goes back through the product with v and softmax, and is the size of
// the cast that went with it.
func (t *tape) softmax(op modelgraph.Attention, g *geo) int64 {
	result, cast := scoreTypes(op, t.s)
	out := t.e * t.s.Tokens * g.out
	first := result // the gradient of what multiplied v
	if cast > 0 {
		first = cast
	}
	t.add(first*g.scores + out)
	t.drop(2*out + cast*g.scores) // the output's gradient; v, which made way for its own; the cast
	if cast > 0 {
		t.turn(cast*g.scores, result*g.scores)
	}
	t.add(2 * result * g.scores) // softmax's (SoftMax.cu: gradient × result, and the scores')
	t.drop(3*result*g.scores + out)
	return cast
}
