package ops

import "github.com/devmap-dev/devmap/modelgraph"

// head follows loss_utils.py ForCausalLMLoss: logits, their fp32 copy, and
// log-softmax (kept for backward); backward makes the gradients of the
// negative log-likelihood and of log-softmax, both fp32 and dense.
func head(op modelgraph.Head, s *Shape) Cost {
	positions := s.Logits
	if op.Pooled {
		positions = s.Batch
	}
	e := s.e()
	nV := positions * op.Vocab
	in := op.Dim * positions
	c := Cost{Known: true, Output: e * nV, FLOPs: 2 * float64(in) * float64(op.Vocab)}
	if !s.Train {
		c.Step.Forward = e * (nV + in)
		if op.SoftCap { // logits / cap, tanh and × cap each make a new tensor
			c.Step.Forward += e * nV
		}
		return c
	}
	c.Step.Loss = true
	c.Step.Saved = 4*nV + 8*positions + s.casts(1, op.Dim, s.Weights)
	if s.HeadAlone && !s.Precision.Mixed() {
		// The input, for the weight's gradient: where the norm is on another
		// device, the hook's copy of it.
		c.Step.Saved += e * in
	}
	if op.SoftCap {
		c.Step.Saved += e * nV // tanh's output
	}
	c.Step.Forward = c.Step.Saved + (e+4)*nV
	c.peak(
		moment{8 * nV, 0, 0},
		// The logits' gradient, the input's, and the weight's.
		moment{e*nV + s.r()*in - 4*nV, s.NewGrads + s.SecondGrads, s.NewGrads + s.SecondGrads},
	)
	return c
}
