package ops

import "github.com/devmap-dev/devmap/modelgraph"

// linear is a projection outside of blocks.
type linear struct {
	plain
	modelgraph.Linear
}

func (op linear) unaligned() bool { return (op.Out|op.In)%8 != 0 }

// cost is the cost of one projection.
func (op linear) cost(shape *Shape) Cost {
	tokens := shape.Tokens
	if op.Pooled {
		tokens = shape.Batch
	}
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	cost := dense(op.In*tokens, op.Out*tokens, op.Out, act, 2*float64(tokens)*float64(op.In)*float64(op.Out), shape)
	if op.Activation == "relu2" && shape.Train { // its result is freed; square's backward makes two more
		cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
		cost.peak(
			backwardPoint{2 * shape.elementBytes() * op.Out * tokens, 0, 0},
			backwardPoint{shape.elementBytes() * op.In * tokens, shape.NewGrads, shape.NewGrads},
		)
	}
	if op.Activation != "" && !shape.Train { // the input is freed before the activation
		cost.Memory.Forward = shape.elementBytes() * tokens * max(op.In+op.Out, activationWork(op.Activation)*op.Out)
	}
	cost.Memory.Forward += op.Extra * shape.elementBytes() * op.In * tokens
	if op.LayerScale {
		cost.Memory.Saved += shape.elementBytes() * op.Out * tokens
	}
	if shape.InputSaved {
		cost.Memory.Saved -= shape.elementBytes() * op.In * tokens
	}
	if op.Persists {
		cost.Memory.UntilBodyEnd = cost.Output
	}
	return cost
}

// dense returns the cost of a product with in input elements and out output elements, and an
// activation that keeps act tensors.
func dense(in, out, bias, act int64, flops float64, shape *Shape) Cost {
	element := shape.elementBytes()
	cost := Cost{Known: true, Output: shape.streamBytes() * out, FLOPs: flops}
	cost.Memory.Saved = element * (in + act*out)
	cost.Casts = shape.casts(0, 0, max(0, shape.Weights-bias))
	cost.Memory.Saved += cost.Casts
	cost.Memory.Forward = element*(in+(1+act)*out) + shape.streamBytes()*out + cost.Casts
	cost.peak(backwardPoint{element * (in + 2*out), shape.NewGrads, shape.NewGrads})
	return cost
}

// freeze keeps the input only for an adapter. It keeps the activation's output only if the
// activation or the next layer needs it.
func (op linear) freeze(cost *Cost, shape *Shape) {
	cost.Memory.Saved -= cost.Casts
	tokens, saved := shape.Tokens, shape.adapterSaved(false)
	if op.Pooled {
		tokens = shape.Batch
	}
	if op.Activation != "" && !KeepsOutput(op.Activation) && !shape.keepsInputs() {
		cost.Memory.Saved -= shape.elementBytes() * op.Out * tokens
	}
	if !shape.InputSaved {
		cost.Memory.Saved -= shape.elementBytes() * op.In * tokens
	} else if inputs, _ := shape.adapters(); len(inputs) > 0 { // cost removed it
		saved -= inputs[0].input(shape, false) - inputs[0].input(shape, true)
	}
	if len(shape.Adapters) == 1 && shape.Adapters[0].Folded == 0 && !op.Pooled {
		op.follow(cost, shape, saved)
		return
	}
	cost.adapted(shape, saved)
}

// follow records a frozen layer and its adapter, tensor by tensor.
func (op linear) follow(cost *Cost, shape *Shape, saved int64) {
	cost.Memory.Saved += saved
	ahead := tape{shape: shape, element: shape.elementBytes(), now: 2 * shape.elementBytes() * op.In * shape.Tokens, see: func(point backwardPoint) { cost.Memory.Forward = max(cost.Memory.Forward, point.activations) }}
	cost.Memory.Forward = cost.Memory.Saved
	ahead.forward(linearLayer{in: op.In, out: op.Out, adapter: &shape.Adapters[0]})
	if op.Activation != "" {
		ahead.add(ahead.element * op.Out * shape.Tokens)
	}
	record := tape{shape: shape, element: shape.elementBytes(), now: cost.Output, see: func(point backwardPoint) { cost.peak(point) }}
	if op.Activation != "" {
		out := record.element * op.Out * shape.Tokens
		record.add(out)
		record.drop(2 * out) // the output's gradient, and the activation's tensors
	}
	record.backward(linearLayer{in: op.In, out: op.Out, adapter: &shape.Adapters[0]}, shape.streamBytes())
}

func (op linear) selected(selective *Selective, shape *Shape, biases int) int64 {
	if biases > 0 {
		return 0
	}
	return selective.product(shape, shape.Tokens, op.Out)
}

func (op linear) traffic(shape *Shape) (forward, backward moved) { return denseTraffic(op.Out, shape) }

func (op linear) bound(*Shape) bound { return bound{width: float64(op.In) + 6*float64(op.Out)} }

// denseTraffic returns the traffic of an output of so many elements per token.
func denseTraffic(out int64, shape *Shape) (forward, backward moved) {
	size := float64(shape.Tokens) * float64(shape.streamBytes()*out)
	return moved{flat: 2 * size}, moved{flat: 3 * size}
}

// conv is a convolution.
type conv struct {
	plain
	modelgraph.Conv
}

// cost keeps the input for the weight's gradient. Patches do not overlap, so a token's input is its
// whole patch.
func (op conv) cost(shape *Shape) Cost {
	tokens := shape.Tokens * max(1, op.TokenRatio)
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	in := op.In * max(1, op.Stride) * tokens
	cost := dense(in, op.Out*tokens, op.Out, act, 2*float64(tokens)*float64(op.In)*float64(op.Kernel)*float64(op.Out), shape)
	if shape.Given {
		cost.Memory.UntilBodyEnd = shape.weightBytes() * in
		if MixedPrecision(shape.Precision) { // what is saved is a cast
			cost.Memory.Saved += shape.weightBytes() * in
		}
	}
	return cost
}

// freeze keeps the input only for an adapter, as [linear] does.
func (op conv) freeze(cost *Cost, shape *Shape) {
	cost.Memory.Saved -= cost.Casts
	cost.Memory.Saved -= shape.elementBytes() * op.In * shape.Tokens * max(1, op.TokenRatio)
	cost.adapted(shape, shape.adapterSaved(false))
}

func (op conv) traffic(shape *Shape) (forward, backward moved) { return denseTraffic(op.Out, shape) }

func (op conv) bound(*Shape) bound {
	return bound{width: float64(max(1, op.TokenRatio)) * (float64(op.In)*float64(max(1, op.Stride)) + 6*float64(op.Out))}
}
