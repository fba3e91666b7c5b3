// Package ops says what each op keeps and needs on a GPU: the tensors it
// saves for backward, its transients, its KV cache and its FLOPs.
//
// The rules are those of PyTorch's eager mode under Transformers 5.17, read
// from the allocations of a block (torch 2.11). A norm keeps its fp32 input,
// the normalised tensor and its output. Attention keeps q, k, v, its output and
// the log-sum-exp. A gated MLP keeps gate, activation, up and product. Each op
// answers the questions of one interface (operation.go) in files of its name,
// and a row in one table (operations.go). Symbols in comments: N tokens of a
// micro-batch, h hidden, q = heads × head width, k = KV heads × head width, f
// FFN width, V vocabulary. In the code, element is the bytes of one in matrix
// products, hN a tensor of the hidden width, fN of the FFN's, nV the logits.
package ops

import "github.com/devmap-dev/devmap/modelgraph"

// Of is the cost of an op. A layer that sees no tokens costs nothing but its
// weights, and gets no gradients.
func Of(op modelgraph.Op, shape *Shape) Cost {
	if shape.Tokens == 0 {
		return Cost{Known: true}
	}
	if shape.Megatron {
		if cost, known := megatron(op, shape); known {
			return cost
		}
		return Cost{}
	}
	asked := operationOf(op)
	cost := asked.cost(shape)
	if shape.Float8.On && shape.Train {
		cost.float8(asked, shape)
	}
	if !shape.Train {
		return inferred(cost, asked, shape)
	}
	cost.Memory.Forward -= cost.Memory.KV // training keeps no cache
	cost.Memory.KV, cost.Memory.CacheGrowth, cost.Memory.HeadPeak, cost.Memory.UntilBodyEnd, cost.Arguments = 0, 0, 0, 0, 0
	cost.Memory.UntilBodyEnd = eagerBias(asked, shape)
	if shape.StreamInput && !shape.Frozen {
		cost.Memory.Saved += cost.Output
	}
	if shape.Frozen {
		cost = cost.frozen(asked, shape)
		cost.Casts = 0                             // autocast caches copies of trained weights alone
		if shape.LinearInputs && shape.InputGrad { // it keeps what a trained one does
			cost.Memory.Saved += asked.slack(shape)
		}
	} else if !shape.Followed {
		cost.Memory.Saved += asked.slack(shape)
	}
	if cost.Memory.LossForward == 0 {
		cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.Saved)
	}
	if reducedInForward(shape, op) {
		return cost
	}
	cost.Memory.Grads = shape.NewGrads
	// At the end all that was saved is gone and every gradient is there.
	cost.peak(backwardPoint{-cost.Memory.Saved, shape.NewGrads, 0})
	return cost
}

// inferred is the cost of an operation without gradients.
func inferred(cost Cost, asked operation, shape *Shape) Cost {
	cost.Memory.Saved, cost.Memory.Backward, cost.Memory.BackwardGrads = 0, 0, 0
	if _, last := asked.(head); last { // when the body has returned
		cost.Memory.Forward, cost.Memory.HeadPeak = 0, cost.Memory.Forward
	}
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.KV)
	if shape.StreamInput || shape.SameResidual {
		cost.Memory.Forward -= cost.Output // no norm's output
	}
	if work := asked.quantInfer(shape); work > 0 { // in addition to input, residual and normed input
		cost.Memory.Forward = max(cost.Memory.Forward, 3*cost.Output+cost.Memory.KV+work)
	}
	cost.Memory.Forward += shape.work()
	if shape.Persists {
		cost.Memory.UntilBodyEnd += cost.Output
	}
	return cost
}

// Products reports whether an op runs matrix products, which take a workspace
// of cuBLAS on its device; of what is not known, yes.
func Products(op modelgraph.Op) bool {
	return operationOf(op).products()
}

// frozen is the cost of a trained op as one that is frozen, with adapters. No
// gradient comes as far as a layer before all adapters.
func (cost Cost) frozen(op operation, shape *Shape) Cost {
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	if !shape.InputGrad && len(shape.Adapters) == 0 {
		if _, last := op.(head); !last {
			cost.Memory.Saved = 0
		}
		return cost
	}
	// 8-bit linear layers keep their inputs past a checkpoint, as attributes
	// of nodes: its hooks see saved tensors alone.
	if shape.attributes() && shape.Recompute && shape.InputGrad {
		cost.Persists = op.inputsPersist(shape)
	}
	op.freeze(&cost, shape)
	return cost
}

// Bound is more than any figure in bytes of the op's cost, in floating point:
// if it is far below 2^63, the integers of [Of] cannot overflow.
func Bound(op modelgraph.Op, shape *Shape) float64 {
	b := operationOf(op).bound(shape)
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		b.width += float64(adapter.In) + float64(adapter.Out) + float64(adapter.Rank)
	}
	tokens := max(float64(shape.Tokens), float64(shape.Encoder), float64(shape.Length), float64(shape.Batch)*float64(shape.Cache), float64(shape.Logits))
	weights := float64(shape.NewGrads) + float64(shape.SecondGrads) + 8*float64(shape.Weights)
	return 64*(tokens+1)*(b.width+64) + 16*b.scores + 8*b.matrix + 2*weights
}

// Saved is what is kept of a layer's forward, in bytes; biases is how many of
// its linear layers have one.
func (selective *Selective) Saved(op modelgraph.Op, shape *Shape, biases int) int64 {
	return operationOf(op).selected(selective, shape, biases)
}
