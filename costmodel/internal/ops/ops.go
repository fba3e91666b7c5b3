package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Shape is one micro-batch as a layer sees it.
type Shape struct {
	Tokens int64 // N
	Length int64 // tokens of one sequence
	Batch  int64 // sequences
	// Encoder is the number of tokens that cross-attention reads.
	Encoder int64
	// Cache is the number of tokens a sequence's KV cache ends with.
	Cache int64
	// Logits is the number of positions that the head projects.
	Logits int64

	// HeadAlone: the layer is the norm before the head, or the head behind
	// one: its input is kept where the head is.
	HeadAlone bool
	// Inputs: the layer embeds a decoder's tokens; the model's forward keeps
	// its output in a variable.
	Inputs bool
	// Images: sequences have images.
	Images bool
	// Scatter: image features take the places of tokens in the layer's output.
	Scatter bool
	// InputKept: the layer that made the input keeps it.
	InputKept bool
	// RotaryCopies: the layer gets a copy of the cosines and sines of its own.
	RotaryCopies bool
	Train        bool
	Precision    costmodel.Precision
	Attention    costmodel.AttentionKernel
	Loss         costmodel.Loss

	// NewGrads are the gradients that the layer's backward makes and leaves;
	// SecondGrads those it makes for a parameter that already has one (a tied
	// parameter, used again later in forward) and adds to it.
	NewGrads, SecondGrads int64
	// Weights is the number of parameters in the layer.
	Weights int64

	// Frozen: the weights take no gradient, so that what they alone need is
	// not kept; Adapters do. InputGrad: gradients go on to the layer's input.
	Frozen, InputGrad bool
	Adapters          []Adapter
	Adapters16        bool // they are read in 16 bits
	// Recompute: forward runs again in backward, up to the last tensor that is
	// kept (torch/utils/checkpoint.py, early_stop).
	Recompute bool
	Quantize  costmodel.Quantize // of the linear layers' weights
}

// Cost is a layer's step with its FLOPs and the size of its output.
type Cost struct {
	Step   costmodel.Step
	FLOPs  float64 // of one forward
	Output int64
	// Casts are the 16-bit copies that autocast makes of the layer's weights.
	Casts int64
	// Arguments are what the call of the wrap unit around the layer holds
	// until it returns, in inference.
	Arguments int64
	// Known is false where nothing but the tensors is known.
	Known bool
	// Waiting is what a frozen block's backward has made before the first
	// tensor that it needs makes it run forward again.
	Waiting int64
	// Stays is what a recomputed block keeps all the same ([Shape.inputsStay]).
	Stays int64
	// back is what an attention kernel's backward holds.
	back int64
}

// Of is the cost of an op. A layer that sees no tokens costs nothing but its
// weights, and gets no gradients.
func Of(op modelgraph.Op, s *Shape) Cost {
	if s.Tokens == 0 {
		return Cost{Known: true}
	}
	c := kernel(op, s)
	if !s.Train {
		c.Step.Saved, c.Step.Backward, c.Step.BackwardGrads = 0, 0, 0
		if _, ok := op.(modelgraph.Head); ok { // when the body has returned
			c.Step.Forward, c.Step.Late = 0, c.Step.Forward
		}
		c.Step.Forward = max(c.Step.Forward, c.Step.KV)
		if work := s.quantInfer(op); work > 0 { // beside input, residual and normed input
			c.Step.Forward = max(c.Step.Forward, 3*c.Output+c.Step.KV+work)
		}
		c.Step.Forward += s.work()
		return c
	}
	c.Step.Forward -= c.Step.KV // training keeps no cache
	c.Step.KV, c.Step.Grown, c.Step.Late, c.Step.Held, c.Arguments = 0, 0, 0, 0, 0
	if s.Frozen {
		c.freeze(op, s)
		c.Casts = 0 // autocast caches copies of trained weights alone
	} else {
		c.Step.Saved += slack(op, s)
	}
	c.Step.Forward = max(c.Step.Forward, c.Step.Saved)
	c.Step.Grads = s.NewGrads
	// At the end all that was saved is gone and every gradient is there.
	c.peak(moment{-c.Step.Saved, s.NewGrads, 0})
	return c
}

func kernel(op modelgraph.Op, s *Shape) Cost {
	switch op := op.(type) {
	case modelgraph.Embedding:
		return embedding(op, s)
	case modelgraph.Norm:
		return norm(op, s)
	case modelgraph.Attention:
		if op.KVRank > 0 {
			return latentAttention(op, s)
		}
		return attention(op, s)
	case modelgraph.MLP:
		return mlp(op, s)
	case modelgraph.MoE:
		return moe(op, s)
	case modelgraph.Head:
		return head(op, s)
	case modelgraph.Linear:
		return linear(op, s)
	case modelgraph.Conv:
		return conv(op, s)
	case modelgraph.StateSpace:
		return stateSpace(op, s)
	case modelgraph.Rotary:
		return rotary(op, s)
	case modelgraph.Parameter:
		return Cost{Known: true}
	}
	return Cost{}
}

// Products reports whether an op runs matrix products, which take a workspace
// of cuBLAS on its device; of what is not known, yes.
func Products(op modelgraph.Op) bool {
	switch op.(type) {
	case modelgraph.Embedding, modelgraph.Norm, modelgraph.Rotary, modelgraph.Parameter:
		return false
	}
	return true
}

// e is the size of an element in matrix products, r in the residual stream.
func (s *Shape) e() int64 { return s.Precision.ComputeBytes() }
func (s *Shape) r() int64 { return s.Precision.StreamBytes() }

// w is the size of a weight and of its gradient.
func (s *Shape) w() int64 { return s.Precision.WeightBytes() }

// half reports a 16-bit residual stream, where fp32 inside a norm is a copy.
func (s *Shape) half() bool { return s.r() == 2 }

// casts is what autocast keeps for n linear layers on an input of width dim:
// a 16-bit copy of the input each, and of the weights.
func (s *Shape) casts(n, dim, weights int64) int64 {
	if !s.Precision.Mixed() || !s.Train {
		return 0
	}
	if s.Frozen {
		n = 0 // an input is kept for its weight's gradient
	}
	return 2*n*dim*s.Tokens + 2*weights
}

// moment is one point of a backward pass: activations above what is saved,
// and the layer's own gradients that exist by then. fresh of them were just
// made; where the parameters had gradients already they alone exist, as a
// gradient is added to the one that is there, in place, before the next node
// runs (torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad).
type moment struct{ activations, grads, fresh int64 }

// peak sets the step's backward to the largest of its moments.
func (c *Cost) peak(moments ...moment) {
	for _, m := range moments {
		c.Step.Again = max(c.Step.Again, m.activations+m.fresh)
		if t := m.activations + m.grads; t > c.Step.Backward {
			c.Step.Backward, c.Step.BackwardGrads = t, m.grads
		}
	}
}
