package ops

import "strings"

// Adapter is a LoRA adapter on one linear layer of an op: A [Rank, In] and
// B [Out, Rank].
type Adapter struct {
	Module        string // path below the layer's: q_proj
	In, Out, Rank int64
	// Output: the linear layer leads back to the residual stream (o_proj,
	// down_proj). Up: its output is the factor without activation (up_proj).
	Output, Up bool
}

// Weights is the number of parameters.
func (adapter *Adapter) Weights() int64 { return adapter.Rank * (adapter.In + adapter.Out) }

// adapters are those whose linear layer reads the op's input, and the one
// that leads back to the residual stream, or nil.
func (shape *Shape) adapters() (inputs []*Adapter, output *Adapter) {
	for i := range shape.Adapters {
		if adapter := &shape.Adapters[i]; adapter.Output {
			output = adapter
		} else {
			inputs = append(inputs, adapter)
		}
	}
	return inputs, output
}

// adapterBytes is the size of an element in an adapter's products: autocast runs them
// in 16 bits, and so does a gathered copy of that type.
func (shape *Shape) adapterBytes() int64 {
	if shape.autocasts() || shape.Adapters16 {
		return 2
	}
	return 4
}

// autocasts reports that adapters run on autocast's copies.
func (shape *Shape) autocasts() bool { return MixedPrecision(shape.Precision) || shape.AdapterCasts }

// converts reports that a 16-bit base meets fp32 adapters: x.to(fp32) before,
// result.to(dtype) after (peft/tuners/lora/layer.py, Linear.forward).
func (shape *Shape) converts() bool { return shape.adapterBytes() != shape.elementBytes() }

// input is the copy of its input that an adapter keeps for A's gradient: fp32
// (_cast_input_dtype) or autocast's. Only fp32 on fp32 reads the base's own
// tensor, and shared says that something else keeps that.
func (shape *Shape) input(adapter *Adapter, shared bool) int64 {
	if shared && !shape.converts() && !shape.autocasts() {
		return 0
	}
	return shape.adapterBytes() * adapter.In * shape.Tokens
}

// inner is A's output, kept for B's gradient, with autocast's copies of both.
func (shape *Shape) inner(adapter *Adapter) int64 {
	bytes := shape.adapterBytes() * adapter.Rank * shape.Tokens
	if shape.autocasts() {
		bytes += 2 * adapter.Weights()
	}
	return bytes
}

// adapterSaved is what the adapters keep for backward. outputShared: the input of the
// linear layer that leads back is kept anyway.
func (shape *Shape) adapterSaved(outputShared bool) int64 {
	inputs, output := shape.adapters()
	return shape.unfusedSaved(inputs, output, outputShared)
}

// unfusedSaved is what adapters keep that PEFT runs one by one.
func (shape *Shape) unfusedSaved(inputs []*Adapter, output *Adapter, outputShared bool) int64 {
	var total int64
	for i, adapter := range inputs {
		total += shape.input(adapter, i > 0 || shape.LinearInputs && shape.InputGrad) + shape.inner(adapter)
	}
	if output != nil {
		total += shape.input(output, outputShared) + shape.inner(output)
	}
	return total
}

// work is the most that an adapter adds to a forward: its input's copy and
// A's output, B's output and the scaled one.
func (shape *Shape) work() int64 {
	var total int64
	for i := range shape.Adapters {
		total = max(total, shape.unfusedWork(&shape.Adapters[i]))
	}
	return total
}

// unfusedWork is what one adapter adds to a forward.
func (shape *Shape) unfusedWork(adapter *Adapter) int64 {
	return shape.input(adapter, true) + shape.inner(adapter) + 2*shape.adapterBytes()*adapter.Out*shape.Tokens
}

// gradBytes is the size of an element of an adapter's gradient.
func (shape *Shape) gradBytes() int64 {
	if shape.Adapters16 {
		return 2
	}
	return 4
}

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
// residual stream's; saved is what is freed with it.
func (record *tape) fusedOutput(adapter *Adapter, saved int64) {
	inner := record.fusedGrads(adapter)
	record.fusedInput(adapter)
	record.drop(inner)
	record.fusedEnd(adapter)
	record.drop(saved + record.shape.fusedCopies(adapter))
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
