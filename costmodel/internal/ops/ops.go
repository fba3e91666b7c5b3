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
	if shape.StreamInput {
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

// megatron is the cost of an op in Megatron-Core 0.19 with TransformerEngine's
// modules, for training (core/models/gpt/gpt_layer_specs.py,
// get_gpt_layer_with_transformer_engine_spec). known is false for other ops.
// Weights' gradients are added to the fp32 buffer by the product itself
// (gradient_accumulation_fusion), so that no op makes a new one.
func megatron(op modelgraph.Op, shape *Shape) (cost Cost, known bool) {
	switch op := op.(type) {
	case modelgraph.Embedding:
		out := 2 * op.Dim * shape.Tokens
		cost.Output, cost.Memory.Saved = out, 8*shape.Tokens
		cost.Memory.Forward = 2*out + 8*shape.Tokens // batch and length change places
		sums := int64(0)
		if shape.Tokens > 3072 { // Embedding.cu, as for torch's
			sums = 4*op.Dim*(shape.Tokens/10+min(shape.Tokens, op.Vocab)) + 3*8*shape.Tokens
		}
		cost.peak(backwardPoint{out + sums + 2*op.Vocab*op.Dim, 0, 0}) // the table's gradient in 16 bits
	case modelgraph.Norm:
		// TELayerNormColumnParallelLinear keeps the norm's input and output.
		out := 2 * op.Dim * shape.Tokens
		cost.Output, cost.Memory.Saved = out, 2*out+4*shape.Tokens
		if op.Style == modelgraph.LayerNorm {
			cost.Memory.Saved += 4 * shape.Tokens
		}
		cost.Memory.Forward = cost.Memory.Saved + out
		cost.peak(backwardPoint{3 * out, 0, 0})
	case modelgraph.Attention:
		if op.KVRank > 0 || op.Cross || op.Gated || op.SharedKV {
			return cost, false
		}
		megatronAttention(attention{Attention: op}, &cost, shape)
	case modelgraph.MLP:
		megatronMLP(op, &cost, shape)
	case modelgraph.Head:
		megatronHead(op, &cost, shape)
	case modelgraph.Rotary, modelgraph.Parameter:
	default:
		return cost, false
	}
	cost.Known = true
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.Saved)
	cost.peak(backwardPoint{-cost.Memory.Saved, 0, 0})
	return cost, true
}

// megatronAttention is self-attention (core/transformer/attention.py). The projection's
// output is split without a copy. If core_attn is recomputed, its checkpoint keeps
// q, k and v as they enter: of v that is the whole projection. With rotary
// embeddings, q and k are new tensors, and each keeps its cosines and sines
// (rope_utils.py, _apply_rotary_pos_emb_bshd). Without the checkpoint, the kernel
// keeps a copy of v alone, and the log-sum-exp.
func megatronAttention(op attention, cost *Cost, shape *Shape) {
	dims, tokens := op.geometry(shape), shape.Tokens
	dims.by = flashKernel
	q, kv := 2*tokens*dims.q, 2*tokens*(dims.k+dims.v)
	stream, out := 2*tokens*op.Dim, 2*tokens*dims.out
	rotated := int64(0)
	if op.Rope {
		rotated = q + 2*tokens*dims.k
		cost.Memory.Saved += rotated + 4*2*tokens*op.HeadDim
	}
	if op.QKNorm != "" { // TENorm keeps contiguous copies of what it reads
		cost.Memory.Saved += q + 2*tokens*dims.k + 4*tokens*op.normRows()
	}
	cost.Output = stream
	recomputed := kv + q // made again by the kernel's call: tensors in its own layout
	switch {
	case shape.CoreAttention || !op.Rope:
		cost.Memory.Saved += q + kv
	default:
		cost.Memory.Saved += 2 * tokens * dims.v
	}
	if !shape.CoreAttention {
		cost.Memory.Saved += 4 * tokens * op.Heads
		recomputed = 0
	}
	cost.Memory.Saved += out
	if op.Dropout {
		cost.Memory.Saved += op.Dim * tokens
	}
	cost.Memory.Forward = 2*stream + cost.Memory.Saved + max(kv+q+out, stream)
	cost.FLOPs = dims.flops
	cost.peak(
		backwardPoint{stream + out + recomputed + op.kernelBackward(&dims, shape), 0, 0},
		backwardPoint{2*stream + q + kv + rotated - cost.Memory.Saved, 0, 0},
	)
}

// megatronMLP keeps fc1's output for the fused activation, and the activation's
// for fc2 (core/fusions/fused_bias_swiglu.py, fused_bias_gelu.py).
func megatronMLP(op modelgraph.MLP, cost *Cost, shape *Shape) {
	stream, hidden, matrices := 2*op.Dim*shape.Tokens, 2*op.Hidden*shape.Tokens, int64(2)
	inner := hidden
	if op.Gated {
		inner, matrices = 2*hidden, 3
	}
	cost.Output, cost.FLOPs = stream, 2*float64(shape.Tokens)*float64(matrices*op.Dim*op.Hidden)
	cost.Memory.Saved = inner + hidden
	if op.Dropout {
		cost.Memory.Saved += op.Dim * shape.Tokens
	}
	cost.Memory.Forward = 3*stream + cost.Memory.Saved
	cost.peak(
		backwardPoint{stream + hidden, 0, 0},           // fc2's input's gradient
		backwardPoint{stream + inner, 0, 0},            // the activation's: its output is gone
		backwardPoint{2*stream + inner - hidden, 0, 0}, // fc1's
	)
}

// megatronHead is the loss of core/fusions/fused_cross_entropy.py: logits, and
// their fp32 copy, in which the exponentials and then their gradient are made; the
// gradient's 16-bit copy continues.
func megatronHead(op modelgraph.Head, cost *Cost, shape *Shape) {
	nV, in := shape.Logits*op.Vocab, 2*op.Dim*shape.Logits
	cost.Output, cost.FLOPs = 2*nV, float64(in)*float64(op.Vocab)
	cost.Memory.Loss = true
	cost.Memory.Saved = 4*nV + 9*shape.Logits
	cost.Memory.Forward = cost.Memory.Saved + 2*nV
	cost.lossParts(2*nV, backwardPoint{2*nV + in - 4*nV, 0, 0})
}
