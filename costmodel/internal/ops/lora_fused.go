package ops

import "strings"

// The functions here follow axolotl's LoRA kernels (axolotl 0.19, kernels/lora.py:
// LoRA_QKV, LoRA_O, LoRA_MLP). Each is one autograd function over all linear
// layers that read one tensor. It keeps their input once, in 16 bits, and 16-bit
// copies of A and B.

// fusesInputs reports that one function runs q, k and v (monkeypatch/lora_kernels.py,
// apply_lora_kernel_patches: each of the three has an adapter).
func (op attention) fusesInputs(shape *Shape) bool {
	inputs, _ := shape.adapters()
	return shape.FusedAdapters && !op.Fused && !op.Cross && len(inputs) == 3
}

// fusesOutput reports that a function runs the output's projection.
func (op attention) fusesOutput(shape *Shape) bool {
	_, output := shape.adapters()
	return shape.FusedAdapters && !op.Fused && !op.Cross && output != nil
}

// fuses reports that one function runs gate, up, activation and down.
func (op mlp) fuses(shape *Shape) bool {
	supported := op.Activation == "silu" || strings.Contains(op.Activation, "gelu") // SUPPORTED_ACTIVATIONS
	return shape.FusedAdapters && op.Gated && !op.Fused && supported && len(shape.Adapters) == 3
}

// fusedCopies are the 16-bit copies of the adapters, which a function keeps.
func (shape *Shape) fusedCopies(adapters ...*Adapter) int64 {
	if shape.Adapters16 {
		return 0 // A.to(dtype) is A
	}
	var total int64
	for _, adapter := range adapters {
		total += 2 * adapter.Weights()
	}
	return total
}

// adapterSaved is what attention's adapters keep. outputShared: the kernel
// keeps the input of the output's projection.
func (op attention) adapterSaved(shape *Shape, outputShared bool) int64 {
	inputs, output := shape.adapters()
	var total int64
	if op.fusesInputs(shape) {
		total += shape.elementBytes()*op.in()*shape.Tokens + shape.fusedCopies(inputs...)
		inputs = nil
	}
	if op.fusesOutput(shape) {
		total += shape.fusedCopies(output)
		if !outputShared {
			total += shape.elementBytes() * output.In * shape.Tokens
		}
		output = nil
	}
	return total + shape.unfusedSaved(inputs, output, outputShared)
}

// adapterWork is the most that attention's adapters add to a forward.
func (op attention) adapterWork(shape *Shape) int64 {
	var total int64
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		fused := op.fusesInputs(shape)
		if adapter.Output {
			fused = op.fusesOutput(shape)
		}
		if fused {
			total = max(total, shape.fusedCopies(adapter)+shape.elementBytes()*adapter.Rank*shape.Tokens)
		} else {
			total = max(total, shape.unfusedWork(adapter))
		}
	}
	return total
}

// fusedForward runs one linear layer of a function (matmul_lora): the weight in 16
// bits, if it is quantised, goes before A and B are cast.
func (record *tape) fusedForward(adapter *Adapter) {
	shape := record.shape
	work := shape.quantForward(adapter.In, adapter.Out, record.element)
	record.add(work + record.element*adapter.Out*shape.Tokens)
	record.drop(work)
	small := shape.fusedCopies(adapter) + record.element*adapter.Rank*shape.Tokens
	record.add(small)
	record.drop(small)
}

// fusedGrads makes the 16-bit gradients of a function's adapters, and what they
// have in common with the input's: the output's gradient times B.
func (record *tape) fusedGrads(adapters ...*Adapter) (inner int64) {
	for _, adapter := range adapters {
		each := record.element * adapter.Rank * record.shape.Tokens
		record.add(2*each + 2*adapter.Weights()) // A times the input goes again
		record.drop(each)
		inner += each
	}
	return inner
}

// fusedInput makes the gradient of a function's input, one linear layer after the
// other: the first product makes the tensor, the others are added in place.
func (record *tape) fusedInput(adapters ...*Adapter) {
	shape := record.shape
	for i, adapter := range adapters {
		if work := shape.quantBackward(adapter.In, adapter.Out, record.element); i == 0 {
			weight := min(work, 2*adapter.In*adapter.Out) // its statistics go before the product
			record.add(work)
			record.drop(work - weight)
			record.add(record.element * adapter.In * shape.Tokens)
			record.drop(weight)
		} else {
			record.add(work)
			record.drop(work)
		}
	}
}

// fusedEnd leaves a function: 16-bit gradients take the type of their parameters,
// one after another (torch/csrc/autograd/engine.cpp, validate_outputs).
func (record *tape) fusedEnd(adapters ...*Adapter) {
	var weights int64
	for _, adapter := range adapters {
		weights += adapter.Weights()
	}
	last := adapters[len(adapters)-1]
	remaining := 2 * last.Rank * last.Out
	if record.shape.gradBytes() == 2 {
		remaining = 0
	}
	record.drop(2*weights - remaining)
	record.grad(0, record.shape.gradBytes()*weights)
	record.drop(remaining)
}

// fusedOutput goes back through LoRA_O. The gradient of its output is the
// residual stream's; kept is what goes with it.
func (record *tape) fusedOutput(adapter *Adapter, kept int64) {
	inner := record.fusedGrads(adapter)
	record.fusedInput(adapter)
	record.drop(inner)
	record.fusedEnd(adapter)
	record.drop(kept + record.shape.fusedCopies(adapter))
}

// fusedInputs goes back through LoRA_QKV; outs are the gradients of q, k and v.
func (record *tape) fusedInputs(adapters []*Adapter, outs int64) {
	shape := record.shape
	inner := record.fusedGrads(adapters...)
	record.fusedInput(adapters...)
	record.drop(inner + outs)
	record.fusedEnd(adapters...)
	record.drop(record.element*adapters[0].In*shape.Tokens + shape.fusedCopies(adapters...))
}

// freezeFused is [mlp.freeze] with LoRA_MLP: it keeps its input, gate and up. The
// activation's kernel writes over these in backward (kernels/swiglu.py,
// swiglu_backward), and over the gradient of the product.
func (op mlp) freezeFused(cost *Cost, shape *Shape) {
	ffn := op.newFeedForward(shape)
	gate, up, down := ffn.gate.adapter, ffn.up.adapter, ffn.down.adapter
	input := ffn.element * op.Dim * shape.Tokens
	stream := shape.streamBytes() * op.Dim * shape.Tokens
	copies := shape.fusedCopies(gate, up, down)
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
