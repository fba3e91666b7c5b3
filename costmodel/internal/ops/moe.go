package ops

import "github.com/devmap-dev/devmap/modelgraph"

// moe is a router with experts.
type moe struct {
	plain
	modelgraph.MoE
}

// shared returns the shared experts as one feed-forward network.
func (op moe) shared() mlp {
	return mlp{MLP: modelgraph.MLP{Dim: op.Dim, Hidden: op.SharedHidden, Gated: op.matrices() == 3, Activation: op.Activation}}
}

// matrices is how many an expert has: NemotronHExperts has no gate.
func (op moe) matrices() int64 {
	if op.Activation == "relu2" {
		return 2
	}
	return 3
}

// cost follows the grouped_mm path of integrations/moe.py: each token's TopK copies pass gate_up
// and down of their experts. Under autocast grouped_mm stays in fp32.
func (op moe) cost(shape *Shape) Cost {
	if op.titan(shape) {
		return op.byTitan(shape)
	}
	element, tokens := shape.streamBytes(), shape.Tokens
	rows, inner := op.TopK*tokens, element
	if op.Dense { // torch.bmm, which autocast runs in 16 bits
		rows, inner = op.Experts*tokens, shape.elementBytes()
	}
	stream := shape.streamBytes() * op.Dim * tokens
	cost := Cost{Known: true, Output: stream}
	cost.FLOPs = 2*float64(rows)*float64(op.matrices()*op.Dim*op.Hidden) + 2*float64(tokens)*float64(op.Dim*op.Experts)
	// Gathered input, gate and up, activation, product, expert output; then
	// the router's softmax, indices, permutations and weights. Squared ReLU keeps its result and the square.
	cost.Memory.Saved = rows*((element+inner)*op.Dim+(2*op.matrices()-2)*inner*op.Hidden) + tokens*(4*op.Experts+41*op.TopK+4) + 512
	cost.Casts = shape.casts(0, 0, op.Dim*op.Experts) // the router is a linear layer
	if op.Dense {
		cost.Casts += shape.casts(0, 0, 3*op.Experts*op.Dim*op.Hidden)
	}
	cost.Memory.Saved += shape.casts(1, op.Dim, 0) + cost.Casts
	// The experts' output comes when gate and up are gone.
	work := rows * (element*op.Dim + (op.matrices()+1)*inner*op.Hidden)
	// The gathered input, the experts' output, that times the weights, and the
	// product in the tokens' order (integrations/moe.py, grouped_mm_experts_forward).
	weighted := op.weighted(shape) * rows * op.Dim
	work = max(work, 2*element*rows*op.Dim+2*weighted)
	if op.Clamped {
		work = clamped(&cost, op, shape, rows)
	}
	if op.SharedHidden > 0 {
		own := *shape
		own.Weights = op.matrices() * op.Dim * op.SharedHidden
		shared := op.shared().cost(&own)
		cost.Memory.Saved += shared.Memory.Saved
		cost.Casts += shared.Casts
		cost.FLOPs += shared.FLOPs
	}
	cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+element*op.Dim*tokens+work)
	if !shape.Train && shape.Cache > shape.Length && !op.Dense {
		// generate() copies the matrices of each token's experts (generation/utils.py,
		// _optimize_model_for_decode; integrations/moe.py, batched_mm_experts_forward).
		cost.Memory.Forward = max(cost.Memory.Forward, shape.weightBytes()*shape.Batch*op.TopK*3*op.Dim*op.Hidden)
	}
	if shape.Train {
		// The experts' output times the weights, and the same in the tokens' order.
		cost.Memory.Forward = max(cost.Memory.Forward, stream+cost.Memory.Saved+2*weighted)
	}
	if op.FP32Routing && element < 4 {
		// modeling_deepseek_v3.py DeepseekV3TopkRouter.forward: the router's
		// fp32 input and weight.
		cost.Memory.Saved += 4 * op.Dim * (tokens + op.Experts)
	}
	op.weightedBack(&cost, shape)
	down := min(shape.NewGrads, shape.weightBytes()*op.Experts*op.Dim*op.Hidden)
	if op.Dense {
		op.denseBack(&cost, shape, down)
		return cost
	}
	if op.matrices() == 2 { // the shared experts have run backward
		back, grads := stream-2*element*op.SharedHidden*tokens, shape.weightBytes()*2*op.Dim*op.SharedHidden
		cost.peak( // the square's gradient and what pow's backward makes, then the gradients of relu's input and of up's
			backwardPoint{back + rows*element*(3*op.Hidden-op.Dim), min(shape.NewGrads, down+grads), down},
			backwardPoint{back - rows*element*op.Hidden, shape.NewGrads, down},
		)
		return cost
	}
	cost.peak(
		// The product's gradient, and those of both factors. The experts' output and the product
		// are freed.
		backwardPoint{stream + rows*element*(2*op.Hidden-op.Dim), down, down},
		// Backward of gate_up: the gradients of its output and input exist. The gathered input is
		// the only saved tensor left of the experts.
		backwardPoint{stream - 2*rows*element*op.Hidden, min(shape.NewGrads, 3*down), min(shape.NewGrads, 2*down)},
		backwardPoint{3*stream - rows*element*(op.Dim+4*op.Hidden), shape.NewGrads, min(shape.NewGrads, 2*down)},
	)
	return cost
}

// denseBack sets the backward of experts that compute every token. The repeated and the scaled
// input are kept, but no result. The shared experts, which run last, have already run backward.
func (op moe) denseBack(cost *Cost, shape *Shape, down int64) {
	element, rows := shape.elementBytes(), op.Experts*shape.Tokens
	shared := 4 * element * op.SharedHidden * shape.Tokens
	grads := down + min(shape.NewGrads-down, 3*shape.weightBytes()*op.Dim*op.SharedHidden)
	cost.peak(
		backwardPoint{cost.Output + 2*rows*element*op.Hidden - shared, grads, down},
		backwardPoint{cost.Output + rows*element*(op.Dim-2*op.Hidden) - shared, min(shape.NewGrads, grads+2*down), 2 * down},
	)
}

// titan reports experts that torchtitan's own module runs. gpt-oss has another module there, and
// Llama 4 none.
func (op moe) titan(shape *Shape) bool {
	return shape.Modules == Torchtitan && shape.Train && !op.Clamped && !op.Dense
}

// together returns the shape for shared experts: the tokens of all GPUs that share matrices.
func (op moe) together(shape *Shape) *Shape {
	own := *shape
	own.Weights, own.Tokens = 3*op.Dim*op.SharedHidden, shape.Tokens*max(1, shape.Tensor)
	return &own
}

// byTitan follows torchtitan 0.3 (models/common/moe.py, MoE.forward and GroupedExperts.forward;
// token_dispatcher.py, AllToAllTokenDispatcher). Backward keeps:
//
//   - the router's input and weight, which autocast makes fp32, and its scores
//   - four lists of indices, and the scores in the order of experts
//   - the received rows, by expert (_permute)
//   - w1's output, its activation, w3's output and their product
//   - the returned rows, in fp32 (combine)
//
// Only shared experts keep the norm's output. TestTitanExperts counts these tensors on a CPU.
func (op moe) byTitan(shape *Shape) Cost {
	tokens, sent := shape.Tokens, op.TopK*shape.Tokens
	rows := sent
	if shape.Routed > 0 {
		rows = shape.Routed
	}
	stream, width, hidden := shape.elementBytes()*op.Dim*tokens, 2*op.Dim, 2*op.Hidden*rows
	cost := Cost{Known: true, Output: stream}
	cost.FLOPs = 2*float64(rows)*float64(3*op.Dim*op.Hidden) + 2*float64(tokens)*float64(op.Dim*op.Experts)
	back := 2 * width * sent // fp32
	saved := 4*op.Dim*(tokens+op.Experts) + 4*tokens*op.Experts + 32*sent + 4*tokens + width*rows + 4*hidden + back
	work := back + width*sent + stream // times the scores, its 16-bit copy, and zeros for the sum
	if shape.Dispatched {
		saved += 8 * rows    // the order by expert
		work += width * rows // the experts' output, before it is sent back
	}
	cost.Memory.Forward = 2*stream + saved + width*sent + work
	var gone int64
	others := shape.weightBytes() * op.Dim * 3 * op.SharedHidden
	matrix := max(0, shape.NewGrads-others-shape.weightBytes()*op.Dim*op.Experts) / 3
	if op.SharedHidden > 0 { // they run backward first, and leave the gradients of their weights and input
		own := op.together(shape)
		shared := op.shared().cost(own)
		gone = shared.Memory.Saved - stream
		saved += shared.Memory.Saved + shape.elementBytes()*op.Dim*(own.Tokens-tokens)
		cost.FLOPs += shared.FLOPs
	} else {
		saved -= stream
	}
	cost.Memory.Saved = saved
	cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+saved)
	others = min(others, shape.NewGrads)
	cost.peak(
		backwardPoint{stream + 3*back - gone, others, 0},                                         // the sum's fp32 gradient, and those of the rows and of the scores
		backwardPoint{stream - back + width*rows + hidden - gone, others + matrix, matrix},       // w2's
		backwardPoint{stream - back + 2*width*rows - 3*hidden - gone, others + 3*matrix, matrix}, // w1's
	)
	return cost
}

// clamped adds the tensors that GptOssExperts._apply_gate keeps: the clamped gate and its sigmoid,
// their product, up + 1, and the result, with the original gate and up. It returns the working
// bytes without gradients: both clamped tensors, and gate, up and their bias.
func clamped(cost *Cost, op moe, shape *Shape, rows int64) (work int64) {
	element := shape.streamBytes()
	cost.Memory.Saved += 3 * rows * element * op.Hidden
	if shape.Train { // the bias of each row and the clamped up, before the experts' output
		cost.Memory.Forward = 3*shape.streamBytes()*op.Dim*shape.Tokens + cost.Memory.Saved + rows*element*(3*op.Hidden-op.Dim)
	}
	return rows * element * (op.Dim + 9*op.Hidden)
}

// weighted returns the bytes per element of the experts' output times the router's weights.
func (op moe) weighted(shape *Shape) int64 {
	if op.CastWeights {
		return shape.streamBytes()
	}
	return 4
}

// weightedBack adds backward of the weighted sum: the gradient in the experts' order, the output's
// gradient, its product with the output, and the gradient's cast.
func (op moe) weightedBack(cost *Cost, shape *Shape) {
	if op.Dense {
		return
	}
	bytes := 3 * op.weighted(shape)
	if element := shape.streamBytes(); element < op.weighted(shape) && !shape.Recompute { // a checkpoint's output lives only as long as the node's apply
		bytes += element
	}
	cost.peak(backwardPoint{cost.Output + bytes*op.TopK*shape.Tokens*op.Dim, 0, 0})
}

// freeze removes the gathered input and the product of each expert.
func (op moe) freeze(cost *Cost, shape *Shape) {
	op.fold(cost, shape)
	op.weightedBack(cost, shape)
	if op.SharedHidden > 0 {
		cost.Memory.Saved -= shape.elementBytes() * op.SharedHidden * shape.Tokens
	}
	frozenOther(cost, shape)
}

// fold adds the weights that adapters are folded into, which a grouped product keeps for its
// input's gradient, and 16-bit copies of A and B, which baddbmm keeps. Such a product keeps its
// input, too. Each weight has a gradient until the adapter has its own.
func (op moe) fold(cost *Cost, shape *Shape) {
	element, rows := shape.streamBytes(), op.TopK*shape.Tokens
	gathered, product, last := rows*element*op.Dim, rows*element*op.Hidden, int64(0)
	// The product's gradient, and those of its factors. The experts' output is freed.
	factors := rows * element * (3*op.Hidden - op.Dim)
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		switch {
		case adapter.Folded == 0:
			continue
		case adapter.In == op.Hidden && adapter.Folded == op.Experts*op.Dim*op.Hidden:
			product, last = 0, element*adapter.Folded
			factors -= rows*element*op.Hidden + last
		case adapter.Folded > op.Experts*op.Dim:
			gathered = 0
			// The gathered input's gradient, after everything except that input is freed.
			cost.peak(backwardPoint{cost.Output + element*adapter.Folded - last - 2*rows*element*op.Hidden, shape.NewGrads, 0})
		case !op.FP32Routing: // the router, which keeps its input; otherwise the cast counts
			cost.Memory.Saved += element * op.Dim * shape.Tokens
		}
		cost.Memory.Saved += element*adapter.Folded + shape.elementBytes()*adapter.Weights()
	}
	cost.Memory.Saved -= gathered + product
	cost.peak(backwardPoint{cost.Output + factors, 0, 0})
	if last > 0 {
		cost.peak(backwardPoint{cost.Output + last + rows*element*op.Hidden, 0, 0})
	}
}

// selected counts the router. Experts run in aten._grouped_mm, which is not in the list of kept
// operations.
func (op moe) selected(selective *Selective, shape *Shape, _ int) int64 {
	if op.titan(shape) {
		// These are topk's values and indices. The router's product always runs again, and the
		// all-to-all is c10d.alltoall_, which is not in the list (activation_checkpoint.py).
		bytes := 12 * op.TopK * shape.Tokens
		if op.SharedHidden > 0 {
			bytes += op.shared().selected(selective, op.together(shape), 0)
		}
		return bytes
	}
	bytes := selective.product(shape, shape.Tokens, op.Experts)
	if op.SharedHidden > 0 {
		bytes += op.shared().selected(selective, shape, 0)
	}
	return bytes
}

// traffic counts the gathered rows, the experts' activations, and the rows weighted and put back
// (integrations/moe.py).
func (op moe) traffic(shape *Shape) (forward, backward moved) {
	element := float64(shape.streamBytes())
	rows := float64(op.TopK * shape.Tokens)
	width, hidden := rows*float64(op.Dim), rows*float64(op.Hidden)
	stream := float64(shape.streamBytes()*op.Dim) * float64(shape.Tokens)
	forward.flat = element*((2+2+3)*width+5*hidden) + 3*stream
	backward.flat = element*((2+3+6)*width+9*hidden) + 3*stream
	return forward, backward
}

// kernels counts the kernels of integrations/moe.py: router, sorting, two grouped products, the
// sum.
func (moe) kernels(*Shape, float64) (forward, backward float64) { return 30, 45 }

func (op moe) bound(shape *Shape) bound {
	copied := 2 * float64(shape.Batch) * float64(op.TopK) * float64(op.Dim) * float64(op.Hidden) // of generate()
	return bound{
		width:  float64(op.Experts) + 64*float64(op.TopK) + float64(1+op.TopK)*(float64(op.Dim)+4*float64(op.Hidden)) + 8*float64(op.SharedHidden),
		matrix: float64(op.Experts)*float64(op.Dim)*float64(1+op.Hidden) + float64(op.Dim)*float64(op.SharedHidden) + copied,
	}
}
