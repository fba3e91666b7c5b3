// Package ops computes the memory of each op on a GPU and its FLOPs: the tensors it saves for
// backward, its transients and its KV cache.
//
// The rules are those of PyTorch's eager mode under Transformers 5.17, from the allocations of a
// block (torch 2.11). A norm keeps its fp32 input, the normalized tensor and its output. Attention
// keeps q, k, v, its output and the log-sum-exp. A gated MLP keeps gate, activation, up and
// product. Each op implements one interface (operation.go) in files of its name, and has a row in
// one table (operations.go).
//
// Symbols in comments: N tokens of a micro-batch, h hidden width, q = heads × head width, k = KV
// heads × head width, f FFN width, V vocabulary. In the code, element is the bytes of an element in
// matrix products, hN a tensor of the hidden width, fN one of the FFN's width, and nV the logits.
package ops

import "github.com/devmap-dev/devmap/modelgraph"

// Of returns the cost of an op. A layer without tokens costs only its weights, and gets no
// gradients.
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
		cost.Casts = 0                             // autocast caches only copies of trained weights
		if shape.LinearInputs && shape.InputGrad { // it keeps the same as a trained one
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
	// At the end all saved tensors are freed and every gradient exists.
	cost.peak(backwardPoint{-cost.Memory.Saved, shape.NewGrads, 0})
	return cost
}

// inferred returns the cost of an operation without gradients.
func inferred(cost Cost, asked operation, shape *Shape) Cost {
	cost.Memory.Saved, cost.Memory.Backward, cost.Memory.BackwardGrads = 0, 0, 0
	if _, last := asked.(head); last { // after the body has returned
		cost.Memory.Forward, cost.Memory.HeadPeak = 0, cost.Memory.Forward
	}
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.KV)
	if shape.StreamInput || shape.SameResidual {
		cost.Memory.Forward -= cost.Output // without a norm's output
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

// Products reports whether an op runs matrix products, which need a workspace of cuBLAS on its
// device. It is true for unknown ops.
func Products(op modelgraph.Op) bool {
	return operationOf(op).products()
}

// frozen returns the cost of a trained op after freezing it, with adapters. Layers before all
// adapters get no gradient.
func (cost Cost) frozen(op operation, shape *Shape) Cost {
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	if !shape.InputGrad && len(shape.Adapters) == 0 {
		if _, last := op.(head); !last {
			cost.Memory.Saved = 0
		}
		return cost
	}
	// 8-bit linear layers keep their inputs past a checkpoint, as attributes of nodes: its hooks
	// see only saved tensors.
	if shape.attributes() && shape.Recompute && shape.InputGrad {
		cost.Persists = op.inputsPersist(shape)
	}
	op.freeze(&cost, shape)
	return cost
}

// Bound is larger than any figure in bytes of the op's cost, in floating point. If it is far below
// 2^63, the integers of [Of] cannot overflow.
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

// Saved returns the bytes kept of a layer's forward. biases is the number of its linear layers with
// a bias.
func (selective *Selective) Saved(op modelgraph.Op, shape *Shape, biases int) int64 {
	return operationOf(op).selected(selective, shape, biases)
}
