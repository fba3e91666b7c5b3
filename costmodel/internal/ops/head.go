package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

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
	switch { // classifiers have one loss, that of their few logits
	case s.eager(op):
		c.eagerLoss(op, s, nV, in)
	case s.Loss == costmodel.LossChunked:
		c.chunkedLoss(op, s)
	default:
		c.fusedLoss(op, s)
	}
	return c
}

// eagerLoss is ForCausalLMLoss on all logits, nV elements, from in elements of
// input.
func (c *Cost) eagerLoss(op modelgraph.Head, s *Shape, nV, in int64) {
	e := s.e()
	c.Step.Saved = 4*nV + 8*in/max(1, op.Dim) + s.casts(1, op.Dim, op.Dim*op.Vocab)
	if s.HeadAlone && !s.Precision.Mixed() {
		// The input, for the weight's gradient: where the norm is on another
		// device, the hook's copy of it.
		c.Step.Saved += e * in
	}
	if op.SoftCap {
		c.Step.Saved += e * nV // tanh's output
	}
	c.Step.Forward = c.Step.Saved + e*nV
	if e < 4 {
		c.Step.Forward += 4 * nV // logits.float()
	}
	if s.Precision.Mixed() {
		c.Step.Forward += s.r() * in // the norm's output, a variable of the model's forward
	}
	c.peak(
		moment{8 * nV, 0, 0},
		// The logits' gradient, the input's, and the weight's.
		moment{e*nV + s.r()*in - 4*nV, s.NewGrads + s.SecondGrads, s.NewGrads + s.SecondGrads},
	)
}

// eager reports that the loss is made of all logits: of a language model's
// by choice, of a classifier's always.
func (s *Shape) eager(op modelgraph.Head) bool {
	return op.Pooled || s.Loss == "" || s.Loss == costmodel.LossEager
}
