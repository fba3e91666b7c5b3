package ops

import "github.com/devmap-dev/devmap/modelgraph"

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
			c.Step.Forward, c.Step.HeadPeak = 0, c.Step.Forward
		}
		c.Step.Forward = max(c.Step.Forward, c.Step.KV)
		if work := s.quantInfer(op); work > 0 { // beside input, residual and normed input
			c.Step.Forward = max(c.Step.Forward, 3*c.Output+c.Step.KV+work)
		}
		c.Step.Forward += s.work()
		return c
	}
	c.Step.Forward -= c.Step.KV // training keeps no cache
	c.Step.KV, c.Step.CacheGrowth, c.Step.HeadPeak, c.Step.UntilBodyEnd, c.Arguments = 0, 0, 0, 0, 0
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
