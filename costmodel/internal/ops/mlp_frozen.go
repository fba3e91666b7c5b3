package ops

import "strings"

// feedForward is a frozen MLP: its linear layers with their adapters, and which of its factors
// needs a gradient.
type feedForward struct {
	op             mlp
	shape          *Shape
	gate, up, down linearLayer
	gates, ups     bool
	element, act   int64 // bytes per element; tensors that the activation keeps
	fN             int64 // bytes of a tensor of the hidden width
}

func (op mlp) newFeedForward(shape *Shape) feedForward {
	ffn := feedForward{op: op, shape: shape, element: shape.wide(), act: activationExtra(op.Activation)}
	ffn.fN = ffn.element * op.Hidden * shape.Tokens
	ffn.gate = linearLayer{in: op.Dim, out: op.Hidden}
	ffn.up, ffn.down = ffn.gate, linearLayer{in: op.Hidden, out: op.Dim, residual: true, shared: shape.keepsInputs()}
	inputs, output := shape.adapters()
	ffn.down.adapter = output
	for _, adapter := range inputs {
		if adapter.Up {
			ffn.up.adapter, ffn.up.shared = adapter, ffn.gate.adapter != nil
		} else {
			ffn.gate.adapter = adapter
		}
	}
	ffn.act = ffn.retained(output)
	if op.Gated && op.Fused {
		ffn.gate.out = 2 * op.Hidden
	}
	if op.oneKernel(shape) {
		ffn.act = 0
	}
	ffn.gates = shape.InputGrad || ffn.gate.adapter != nil
	ffn.ups = op.Gated && (shape.InputGrad || ffn.up.adapter != nil || op.Fused && ffn.gates)
	return ffn
}

// retained returns how many tensors the activation keeps in addition to its result.
func (ffn *feedForward) retained(output *Adapter) int64 {
	switch name := ffn.op.Activation; {
	case name == "xielu": // its input, expm1 and a product
		return 3
	case !ffn.op.Gated && KeepsOutput(name) && output != nil && ffn.shape.converts() && !ffn.shape.keepsInputs():
		return 1 // its output, as the adapter reads a cast
	}
	return ffn.act
}

// freeze keeps gate if up needs a gradient, and the activation and up if gate does. Only adapters
// keep the product.
func (op mlp) freeze(cost *Cost, shape *Shape) {
	if op.fuses(shape) {
		op.freezeFused(cost, shape)
		return
	}
	ffn := op.newFeedForward(shape)
	cost.Memory.Saved = ffn.saved()
	cost.Memory.Forward = 0
	stream := shape.streamBytes() * op.Dim * shape.Tokens
	third := ffn.element * op.Dim * shape.Tokens
	if shape.Recompute {
		third = stream // the gradient of its output exists
	}
	forward := tape{shape: shape, element: ffn.element, now: stream + residualApart(shape, stream) + third, see: func(point backwardPoint) { cost.Memory.Forward = max(cost.Memory.Forward, point.activations) }}
	ffn.forward(&forward)
	cost.Waiting = forward.waiting(ffn.down)
	ffn.backward(&tape{shape: shape, element: ffn.element, now: stream, see: func(point backwardPoint) { cost.peak(point) }})
}

func (ffn *feedForward) saved() int64 {
	shape := ffn.shape
	bytes := shape.adapterSaved(ffn.down.shared) + shape.casts(0, 0, shape.Weights)
	if ffn.gates {
		bytes += ffn.act * ffn.fN
		if ffn.op.Activation == "xielu" { // the condition of positive inputs
			bytes += ffn.op.Hidden * shape.Tokens
		}
		if ffn.op.Gated {
			bytes += ffn.fN // up, for the activation's gradient
		}
	}
	if ffn.ups {
		bytes += ffn.fN
	}
	if shape.keepsInputs() {
		bytes += ffn.fN // of down
	}
	if ffn.op.Dropout {
		bytes += ffn.op.Dim * shape.Tokens
	}
	if ffn.op.InnerDropout {
		bytes += ffn.op.Hidden * shape.Tokens
	}
	return bytes
}

func (ffn *feedForward) forward(record *tape) {
	record.forward(ffn.gate)
	if ffn.op.Gated {
		if ffn.act > 0 {
			record.add(ffn.fN) // the activation
		}
		if !ffn.op.Fused {
			record.forward(ffn.up)
		}
		record.add(ffn.fN) // the product
	} else {
		record.add(ffn.act * ffn.fN)
		if KeepsOutput(ffn.op.Activation) { // its input is freed
			record.drop(ffn.act * ffn.fN)
		}
	}
	if ffn.shape.Recompute {
		record.stop(ffn.down)
	} else {
		record.forward(ffn.down)
	}
}

func (ffn *feedForward) backward(record *tape) {
	record.backward(ffn.down, ffn.element)
	if !ffn.gates && !ffn.ups {
		return
	}
	if ffn.op.oneKernel(ffn.shape) { // gradients overwrite gate and up
		record.drop(ffn.fN)
		record.backward(ffn.up, ffn.shape.streamBytes())
		record.backward(ffn.gate, ffn.shape.streamBytes())
		return
	}
	if ffn.op.Gated {
		record.add(2 * ffn.fN)
		record.drop(3 * ffn.fN) // the product's gradient, up and activation
	}
	if ffn.op.Gated && !ffn.op.Fused {
		record.backward(ffn.up, ffn.shape.streamBytes())
	}
	record.add(ffn.fN)
	record.drop((1 + ffn.act) * ffn.fN)
	if ffn.op.Fused {
		record.add(2 * ffn.fN) // the halves' gradients are joined
		record.drop(2 * ffn.fN)
	}
	record.backward(ffn.gate, ffn.shape.streamBytes())
}

func (op mlp) inputsPersist(shape *Shape) int64 {
	return shape.Tokens * (shape.streamBytes()*op.Dim + shape.wide()*op.Hidden)
}

func (op mlp) quantInfer(shape *Shape) int64 {
	if shape.Quantize == "" {
		return 0
	}
	fN := shape.wide() * op.Hidden * shape.Tokens
	return max(2*fN+shape.quantForward(op.Dim, op.Hidden, shape.wide()), fN+shape.wide()*op.Dim*shape.Tokens+shape.quantForward(op.Hidden, op.Dim, shape.wide()))
}

// fuses reports that one function runs gate, up, activation and down.
func (op mlp) fuses(shape *Shape) bool {
	supported := op.Activation == "silu" || strings.Contains(op.Activation, "gelu") // SUPPORTED_ACTIVATIONS
	return shape.FusedAdapters && op.Gated && !op.Fused && supported && len(shape.Adapters) == 3
}

// freezeFused is [mlp.freeze] with LoRA_MLP, which keeps its input, gate and up. In backward the
// activation's kernel overwrites these (kernels/swiglu.py, swiglu_backward), and the gradient of
// the product.
func (op mlp) freezeFused(cost *Cost, shape *Shape) {
	ffn := op.newFeedForward(shape)
	gate, up, down := ffn.gate.adapter, ffn.up.adapter, ffn.down.adapter
	input := ffn.element * op.Dim * shape.Tokens
	stream := shape.streamBytes() * op.Dim * shape.Tokens
	copies := fusedCopies(shape, gate, up, down)
	cost.Memory.Saved = input + 2*ffn.fN + copies
	cost.Memory.Forward, cost.Waiting = 0, 0
	forward := tape{shape: shape, element: ffn.element, now: 2*stream + input, see: func(point backwardPoint) { cost.Memory.Forward = max(cost.Memory.Forward, point.activations) }}
	forward.fusedForward(gate)
	forward.fusedForward(up)
	forward.add(ffn.fN)
	forward.fusedForward(down)
	forward.add(copies)

	back := tape{shape: shape, element: ffn.element, now: stream, see: func(point backwardPoint) { cost.peak(point) }}
	work := shape.quantBackward(op.Hidden, op.Dim, ffn.element)
	weight := min(work, 2*op.Hidden*op.Dim)
	back.add(work)
	back.drop(work - weight)
	back.add(ffn.fN)
	back.drop(weight)
	inner := back.fusedGrads(down, up, gate)
	if shape.InputGrad {
		back.fusedInput(up, gate)
	}
	back.drop(inner + ffn.fN)
	back.fusedEnd(gate, up, down)
	back.drop(cost.Memory.Saved)
}
