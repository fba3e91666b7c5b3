package ops

import "github.com/devmap-dev/devmap/modelgraph"

// freeze makes the cost of a trained op that of a frozen one with adapters:
// what is kept for gradients of weights alone goes.
func (c *Cost) freeze(op modelgraph.Op, s *Shape) {
	c.Step.Backward, c.Step.BackwardGrads, c.Step.AccumPeak = 0, 0, 0
	if !s.InputGrad && len(s.Adapters) == 0 {
		if _, head := op.(modelgraph.Head); !head {
			c.Step.Saved = 0 // no gradient comes as far as this
		}
		return
	}
	c.Stays = s.inputsStay(op)
	switch op := op.(type) {
	case modelgraph.Embedding:
		// A leaf whose gradient lives with it (enable_input_require_grads).
		c.Step.Saved = 0
		c.peak(moment{c.Output, 0, 0})
	case modelgraph.Norm:
		c.frozenNorm(op, s)
	case modelgraph.MLP:
		c.frozenMLP(op, s)
	case modelgraph.Attention:
		if op.KVRank > 0 {
			c.Step.Saved -= 2 * s.e() * s.Tokens * (op.QRank + op.KVRank)
			c.frozenOther(s)
			return
		}
		c.frozenAttention(op, s)
	case modelgraph.MoE:
		// The gathered input and the product of each expert.
		c.Step.Saved -= op.TopK * s.Tokens * s.r() * (op.Dim + op.Hidden)
		if op.SharedHidden > 0 {
			c.Step.Saved -= s.e() * op.SharedHidden * s.Tokens
		}
		c.frozenOther(s)
	case modelgraph.Linear, modelgraph.Conv:
		c.frozenDense(op, s)
	case modelgraph.Head:
		c.frozenHead(op, s)
	default:
		c.frozenOther(s)
	}
}

// frozenOther adds adapters to an op whose backward is not followed event by
// event: a moment for the widest adapter on top of the input's and the
// output's gradients.
func (c *Cost) frozenOther(s *Shape) { c.adapted(s, s.kept(false)) }

// adapted is [Cost.frozenOther] with what the adapters keep.
func (c *Cost) adapted(s *Shape, kept int64) {
	c.Step.Saved += kept
	c.Step.Forward = max(c.Step.Forward, c.Step.Saved) + s.work()
	work := 2 * c.Output
	for i := range s.Adapters {
		a := &s.Adapters[i]
		work = max(work, c.Output+s.Tokens*((s.e()+2*s.ab())*a.Out+s.e()*a.In))
	}
	c.peak(moment{work + c.Output, s.NewGrads, s.NewGrads})
}

// frozenNorm keeps the fp32 input and 1/σ; Gemma's (1 + weight) is a constant
// tensor. The output is kept where the linear layers that read it do.
func (c *Cost) frozenNorm(op modelgraph.Norm, s *Shape) {
	hN := op.Dim * s.Tokens
	c.Step.Saved = 4*hN + 4*s.Tokens
	back := s.r()*hN + 20*hN // pow's backward holds five fp32 tensors
	switch op.Style {
	case modelgraph.LayerNorm:
		c.Step.Saved = s.r()*hN + 8*s.Tokens
		back = 3 * s.r() * hN
	case modelgraph.GemmaRMSNorm:
		c.Step.Saved += 4 * op.Dim
	case modelgraph.RMSNorm:
	}
	if s.InputKept && !s.half() {
		c.Step.Saved -= 4 * hN // no copy of its own
		back += 4 * hN
	}
	if s.keepsInputs() && !op.Post && !s.HeadAlone {
		c.Step.Saved += s.r() * hN
	}
	c.peak(moment{back, 0, 0})
}

// frozenDense is one linear layer or convolution: its input is kept by an
// adapter alone, and the output of its activation by the activation itself or
// by what reads it.
func (c *Cost) frozenDense(op modelgraph.Op, s *Shape) {
	n, kept := s.Tokens, s.kept(false)
	switch op := op.(type) {
	case modelgraph.Linear:
		if op.Pooled {
			n = s.Batch
		}
		if op.Activation != "" && !KeepsOutput(op.Activation) && !s.keepsInputs() {
			c.Step.Saved -= s.e() * op.Out * n
		}
		if !s.InputKept {
			c.Step.Saved -= s.e() * op.In * n
		} else if inputs, _ := s.adapters(); len(inputs) > 0 { // linear took it off
			kept -= s.input(inputs[0], false) - s.input(inputs[0], true)
		}
	case modelgraph.Conv:
		c.Step.Saved -= s.e() * op.In * n * max(1, op.TokenRatio)
	}
	c.adapted(s, kept)
}

// frozenHead keeps what the loss does, but no input.
func (c *Cost) frozenHead(op modelgraph.Head, s *Shape) {
	positions := s.Logits
	if op.Pooled {
		positions = s.Batch
	}
	nV, in := positions*op.Vocab, op.Dim*positions
	eager := s.eager(op)
	if eager && s.HeadAlone && !s.Precision.Mixed() {
		c.Step.Saved -= s.e() * in
		c.Step.Forward -= s.e() * in
	}
	c.Step.Saved += s.kept(false)
	c.Step.Forward += s.kept(false) + s.work()
	if !eager { // the input's gradient was made in forward
		c.peak(moment{0, s.NewGrads, s.NewGrads})
		return
	}
	c.peak(
		moment{8 * nV, 0, 0},
		moment{s.e()*nV + s.r()*in - 4*nV, s.NewGrads, s.NewGrads},
	)
}
