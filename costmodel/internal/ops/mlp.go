package ops

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// mlp is a feed-forward network.
type mlp struct {
	plain
	modelgraph.MLP
}

// cost follows modeling_llama.py LlamaMLP. A gated network computes down(act(gate(x)) · up(x)).
// Without Gated it computes fc2(act(fc1(x))).
func (op mlp) cost(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	fN := op.Hidden * tokens
	stream := shape.streamBytes() * op.Dim * tokens
	tensors, working, linears, mats := op.counts(shape)
	cost := Cost{Known: true, Output: stream, FLOPs: 2 * float64(tokens) * float64(mats*op.Dim*op.Hidden)}
	cost.Memory.Saved = element*tensors*fN + shape.casts(linears, op.Dim, 0)
	cost.mlpCasts(op, shape, mats)
	cost.Memory.Forward = 2*stream + element*op.Dim*tokens + element*working*fN
	if op.Activation == "xielu" { // the condition of positive inputs
		cost.Memory.Saved += fN
		cost.Memory.Forward += fN
	}
	if shape.Train {
		cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+element*op.Dim*tokens+cost.Memory.Saved)
	}
	if op.Inline && !shape.Train {
		cost.Memory.Forward -= element * op.Dim * tokens
	}
	cost.Memory.Forward += shape.reduced(op.Dim) + op.Extra*stream
	if op.LayerScale {
		cost.Memory.Saved += element * op.Dim * tokens
	}
	if op.Dropout {
		cost.Memory.Saved += op.Dim * tokens // native_dropout's mask, one byte per element
	}
	cost.Memory.Saved += op.dropped(shape)
	cost.mlpBackward(op, shape, tensors)
	return cost
}

// mlpBackward sets the moments of the backward pass.
func (cost *Cost) mlpBackward(op mlp, shape *Shape, tensors int64) {
	element, tokens := shape.elementBytes(), shape.Tokens
	fN, stream := op.Hidden*tokens, shape.streamBytes()*op.Dim*tokens
	matrix := min(shape.NewGrads, shape.weightBytes()*op.Dim*op.Hidden)
	in := matrix // of the first linear layer, whose gradient comes last
	if op.Fused {
		in = min(shape.NewGrads, 2*matrix)
	}
	factors := element * op.factors(activationExtra(op.Activation), shape) * fN
	gone := shape.casts(0, 0, op.Dim*op.Hidden) // the casts of all weights, less the last gradient before its cast
	if op.Gated && !op.Fused {
		gone *= 2
	}
	masked := int64(0) // a dropout's mask, which is freed
	if op.Dropout {
		masked = op.Dim * tokens
	}
	factors += op.inFP32(shape) * fN
	cost.peak(
		// down's own backward
		backwardPoint{stream + element*fN - masked, matrix, matrix},
		// The product's gradient, during the gradients of both factors (one kernel has none of
		// these). Under autocast, down's backward (AddmmBackward0, MmBackward0) has released its
		// 16-bit weight, and autocast_mode.cpp's cache is cleared.
		backwardPoint{stream + factors - masked - shape.casts(0, 0, op.Dim*op.Hidden), matrix, 0},
		// Every matrix has its gradient, and the saved tensors are freed. Autocast's last gradient
		// is cast.
		backwardPoint{3*stream - element*tensors*fN - masked - gone, shape.NewGrads, in},
	)
	if biases := shape.NewGrads - 2*matrix; !op.Gated && biases > 0 {
		// The sums of fc2's and fc1's bias gradients. Before the latter, fc2's output, which a
		// scale keeps, is freed too.
		left, first := 2*stream+element*fN-element*tensors*fN-masked, stream+element*fN-masked
		if op.LayerScale {
			left -= element * op.Dim * tokens
		}
		if shape.Recompute && !MixedPrecision(shape.Precision) {
			// Tensors that a checkpoint recomputes live as long as the node's apply. The sum comes
			// after that (torch/csrc/autograd/engine.cpp, validate_outputs).
			left, first = left-element*op.Dim*tokens, first-element*fN
		}
		cost.peak(
			backwardPoint{first + ReduceBuffer(tokens, op.Dim), matrix, matrix},
			backwardPoint{left + ReduceBuffer(tokens, op.Hidden) - 2*gone, shape.NewGrads, in},
		)
	}
	if op.Gated && !op.Fused {
		cost.factorPeaks(op, shape, matrix, tensors)
	}
}

// inFP32 returns the bytes per element of an activation's backward in addition to its factors in
// the compute type.
func (op mlp) inFP32(shape *Shape) int64 {
	switch mixed := MixedPrecision(shape.Precision); {
	case op.Activation == "xielu" && mixed:
		return 7 // four gradients in fp32, the cast of one
	case op.Activation == "xielu":
		return -1 // the condition of positive inputs
	case op.Activation == "gelu_new" && !op.Gated && mixed:
		return 8 // fp32 gradients of the result and of its factors, and one cast
	case op.Activation == "relu2" && mixed:
		return 8
	}
	return 0
}

// dropped returns the bytes that dropout of the last linear layer's input keeps: a mask, and its
// result if the activation's result is kept too.
func (op mlp) dropped(shape *Shape) int64 {
	switch fN := op.Hidden * shape.Tokens; {
	case !op.InnerDropout:
		return 0
	case !op.Gated && KeepsOutput(op.Activation):
		return fN + shape.elementBytes()*fN
	default:
		return fN
	}
}

// counts returns the kept and the working tensors of the hidden width, the linear layers on the
// input, and the matrices.
func (op mlp) counts(shape *Shape) (tensors, working, linears, mats int64) {
	act := activationExtra(op.Activation)
	tensors, working, linears, mats = act+1, activationWork(op.Activation), 1, 2
	if op.Gated {
		tensors, mats = act+3, 3                        // plus up and the product
		working = max(activationWork(op.Activation), 3) // gate is freed once its activation exists
		linears = 2
		if op.Fused {
			linears, working = 1, working+1
		}
	}
	if op.oneKernel(shape) {
		tensors-- // the activation
	}
	if shape.Compiled {
		linears = 1 // one cast for both
	}
	return tensors, working, linears, mats
}

// factorPeaks sets the moments of up's and gate's backward. Their activation and product keep
// tensors tensors.
func (cost *Cost) factorPeaks(op mlp, shape *Shape, matrix, tensors int64) {
	element, fN, stream := shape.elementBytes(), op.Hidden*shape.Tokens, cost.Output
	if op.oneKernel(shape) {
		// Gradients overwrite gate and up (liger_kernel/ops/swiglu.py, _swiglu_backward_kernel).
		// Then up's backward runs, and gate's.
		cost.peak(
			backwardPoint{2*stream - element*fN - shape.casts(0, 0, op.Dim*op.Hidden), min(shape.NewGrads, 2*matrix), matrix},
			backwardPoint{3*stream - 2*element*fN - shape.casts(1, op.Dim, 2*op.Dim*op.Hidden), shape.NewGrads, matrix},
		)
		return
	}
	// During up's backward the product, up and the activation are freed, and the gradients of up
	// and gate exist. Then gate's backward has only its own. A linear layer's casts under autocast
	// are freed with its backward.
	cost.peak(
		backwardPoint{2*stream - element*fN - shape.casts(0, 0, op.Dim*op.Hidden), min(shape.NewGrads, 2*matrix), matrix},
		backwardPoint{3*stream + element*fN - element*tensors*fN - shape.casts(1, op.Dim, 2*op.Dim*op.Hidden), shape.NewGrads, matrix},
	)
}

// oneKernel reports that activation and product are one kernel.
func (op mlp) oneKernel(shape *Shape) bool { return shape.OneKernel && op.Gated && !op.Fused }

// mlpCasts adds autocast's 16-bit copies of mats matrices, and what the allocator adds to these;
// slack counts the rest. Biases are cast, but not kept.
func (cost *Cost) mlpCasts(op mlp, shape *Shape, mats int64) {
	if !MixedPrecision(shape.Precision) || !shape.Train {
		return
	}
	matrix := op.Dim * op.Hidden
	cost.Casts = shape.casts(0, 0, mats*matrix)
	cost.Memory.Saved += cost.Casts
	if !shape.Recompute && !shape.Frozen && !shape.Float8.On {
		cost.Memory.Saved += mats * remainder(2*matrix)
	}
	switch op.Activation {
	case "xielu": // XIELUActivation: expm1 and what follows run in fp32, and the result's cast
		cost.Memory.Saved += 6 * op.Hidden * shape.Tokens
	case "relu2": // torch.square is a pow, too, which keeps a cast of its input
		cost.Memory.Saved += 4 * op.Hidden * shape.Tokens
	case "gelu_new":
		// Autocast runs torch.pow in fp32 (activations.py NewGELUActivation). So x, tanh and 1 +
		// tanh are kept in 4 bytes, 0.5·x and the result's cast in 2.
		cost.Memory.Saved += 6 * op.Hidden * shape.Tokens
	}
}

func (op mlp) slack(shape *Shape) int64 {
	tensors := activationExtra(op.Activation) + 1
	if op.Gated {
		tensors += 2
	}
	return tensors * remainder(shape.elementBytes()*op.Hidden*shape.Tokens)
}

func (op mlp) selected(selective *Selective, shape *Shape, biases int) int64 {
	widths := []int64{op.Hidden, op.Dim}
	switch {
	case biases > 0:
		return 0
	case op.Gated && op.Fused:
		widths[0] *= 2
	case op.Gated:
		widths = slices.Insert(widths, 0, op.Hidden)
	}
	var total int64
	for _, width := range widths {
		total += selective.product(shape, shape.Tokens, width)
	}
	return total + scatteredOutput(shape, op.Dim)
}

// traffic counts the activation, gate × up, the residual's sum, and the sum of the gradients of
// gate's and up's inputs.
func (op mlp) traffic(shape *Shape) (forward, backward moved) {
	tokens, element, residual := float64(shape.Tokens), float64(shape.elementBytes()), float64(shape.streamBytes())
	hidden, stream := tokens*float64(op.Hidden), tokens*float64(op.Dim)
	ahead, back := activationTraffic(op.Activation)
	linears := 1.
	if op.Gated {
		ahead, back = ahead+3, back+6
		linears = 2
	}
	forward.flat = ahead*element*hidden + 3*residual*stream
	backward.flat = back*element*hidden + (linears-1)*3*residual*stream
	if op.Fused { // Phi3MLP: both factors are halves of rows, and their gradients are joined
		forward = moved{3 * residual * stream, ahead * element * hidden}
		backward = moved{0, (back + 4) * element * hidden}
	}
	if MixedPrecision(shape.Precision) {
		forward, backward = forward.add(linears*6*stream, 0), backward.add(0, linears*6*stream)
	}
	if op.Dropout {
		forward, backward = forward.add(2*residual*stream, 0), backward.add(2*residual*stream, 0)
	}
	return forward, backward
}

func (op mlp) kernels(_ *Shape, casts float64) (forward, backward float64) {
	linears, ahead, back := 2., 2., 2.
	if op.Gated {
		linears, ahead, back = 3, 3, 4
	}
	extra := max(0, float64(activationExtra(op.Activation))*2-2)
	return linears*(1+casts) + ahead + extra, linears*(2+casts) + back + 2*extra
}

func (op mlp) bound(*Shape) bound {
	return bound{width: float64(op.Dim) + 8*float64(op.Hidden), matrix: float64(op.Dim) * float64(op.Hidden)}
}
