package ops

// tape follows the allocations of a frozen op with adapters in execution order: the live bytes, and
// the adapters' gradients.
type tape struct {
	shape      *Shape
	element    int64 // bytes per element of the linear layers' outputs
	now, grads int64
	see        func(backwardPoint)
}

func (record *tape) add(bytes int64) {
	record.now += bytes
	record.see(backwardPoint{record.now, record.grads, 0})
}
func (record *tape) drop(bytes int64) { record.now -= bytes }

// turn converts a tensor to another type and frees the old one.
func (record *tape) turn(from, to int64) {
	if from != to {
		record.add(to)
		record.drop(from)
	}
}

// grad makes the gradient of one matrix while so many new bytes exist.
func (record *tape) grad(bytes, matrix int64) {
	record.now += bytes
	record.grads += matrix
	record.see(backwardPoint{record.now, record.grads, matrix})
}

// linearLayer is a frozen linear layer and its adapter, or nil.
type linearLayer struct {
	in, out int64
	adapter *Adapter
	// shared: something else keeps the input. residual: the output joins the residual stream.
	shared, residual bool
}

// residualApart returns the bytes of the residual in a block's second half in addition to the
// norm's tensors. An fp32 norm makes no copy of its input (modeling_llama.py, LlamaRMSNorm.forward:
// x.to(torch.float32) is x), so it returns 0.
func residualApart(shape *Shape, residual int64) int64 {
	if shape.streamBytes() == 4 && shape.InputGrad {
		return 0
	}
	return residual
}

// forward runs base, A, B, "* scaling", their sum in the wider type, and the cast back
// (peft/tuners/lora/layer.py, Linear.forward; bnb.py casts before the sum, without autocast). The
// output and the adapter's tensors remain. So does autocast's copy of a frozen fp32 weight, for the
// input's gradient.
func (record *tape) forward(op linearLayer) {
	shape := record.shape
	element, ab, tokens := record.element, shape.adapterBytes(), shape.Tokens
	work := shape.quantForward(op.in, op.out, element)
	record.add(shape.casts(0, 0, op.in*op.out) + element*op.out*tokens + work)
	record.drop(work)
	if op.adapter == nil {
		return
	}
	copied, dropped := op.adapter.copied(shape)
	record.add(op.adapter.input(shape, op.shared) + copied + dropped)
	record.drop(dropped)
	record.add(op.adapter.inner(shape))
	record.add(2 * ab * op.out * tokens) // B's output, and the scaled output
	record.drop(ab * op.out * tokens)
	if shape.Quantize != "" && !shape.autocasts() {
		record.turn(ab*op.out*tokens, element*op.out*tokens)
		ab = element
	}
	sum := max(element, ab)
	record.add(sum * op.out * tokens)
	record.drop((element + ab) * op.out * tokens)
	record.turn(sum*op.out*tokens, element*op.out*tokens)
	record.drop(copied)
}

// stop runs the last linear layer of a block again up to the last kept tensor: the adapter's input
// and A's output, or without an adapter the weight.
func (record *tape) stop(op linearLayer) {
	if op.adapter == nil {
		return
	}
	shape := record.shape
	copied, dropped := op.adapter.copied(shape)
	record.add(shape.casts(0, 0, op.in*op.out) + record.element*op.out*shape.Tokens + op.adapter.input(shape, op.shared) + copied + dropped)
	record.drop(dropped)
	record.add(op.adapter.inner(shape))
}

// waiting returns the bytes in backward of a block's last linear layer when it needs the first
// tensor that was not kept, in addition to its output's gradient. These are the scaled gradient for
// B's weight and the base's 16-bit gradient. A 4-bit weight is an attribute of its node, so without
// an adapter the input's gradient is made first.
func (record *tape) waiting(op linearLayer) int64 {
	shape, element, tokens := record.shape, record.element, record.shape.Tokens
	cast := int64(0)
	if op.residual && shape.streamBytes() != element { // autocast: a cast of the stream's gradient
		cast = element * op.out * tokens
	}
	switch {
	case op.adapter != nil && shape.converts() && shape.Quantize == "":
		return (shape.adapterBytes() + element) * op.out * tokens
	case op.adapter != nil:
		return cast + shape.adapterBytes()*op.out*tokens
	case shape.Quantize != "":
		return element * op.in * tokens
	}
	return 0
}

// backward runs backward of a linear layer. The output's gradient exists, and is freed unless the
// residual stream has it too. The input's gradient, of x bytes per element, remains.
func (record *tape) backward(op linearLayer, x int64) {
	shape := record.shape
	element, tokens := record.element, shape.Tokens
	if op.residual && shape.streamBytes() != element { // autocast: a cast of the stream's gradient
		record.add(element * op.out * tokens)
		op.residual = false
	}
	if op.adapter != nil {
		op.residual = record.adapter(&op, x)
	}
	work := shape.quantBackward(op.in, op.out, element)
	record.add(element*op.in*tokens + work)
	record.drop(work)
	if !op.residual {
		record.drop(element * op.out * tokens)
	}
	record.turn(element*op.in*tokens, x*op.in*tokens)
	if op.adapter != nil {
		record.drop(x * op.in * tokens) // added to the adapter's, in place
	}
}

// inputGrad runs backward from A's input through its casts, and dropout between them.
func (record *tape) inputGrad(adapter *Adapter, x int64) {
	shape, size := record.shape, adapter.In*record.shape.Tokens
	from := shape.adapterBytes()
	if adapter.widened(shape) || shape.AdapterDropout && shape.autocasts() && !quantized16(shape) {
		record.turn(from*size, 4*size)
		from = 4
	}
	if shape.AdapterDropout {
		record.add((from + 1) * size) // with the mask, which was freed with A's input
		record.drop((from + 1) * size)
	}
	record.turn(from*size, x*size)
}

// adapter runs backward of the sum, the scaling, B, A and the input's cast. It reports whether the
// base shares its output's gradient with the residual stream. If the sum is fp32, the base gets a
// 16-bit copy of its gradient (torch/csrc/autograd/engine.cpp, validate_outputs).
func (record *tape) adapter(op *linearLayer, x int64) bool {
	shape, adapter := record.shape, op.adapter
	element, ab, tokens := record.element, shape.adapterBytes(), shape.Tokens
	convert, residual := element != ab, op.residual
	if convert {
		record.add(ab * op.out * tokens)
		if shape.Quantize == "" {
			if !residual {
				record.drop(element * op.out * tokens)
			}
			record.add(element * op.out * tokens)
			residual = false
		}
	}
	record.add(ab * op.out * tokens) // gradient * scaling
	if convert {
		record.drop(ab * op.out * tokens)
	}
	inner := ab * adapter.Rank * tokens
	record.grad(inner, shape.gradBytes()*op.out*adapter.Rank)
	record.drop(ab*op.out*tokens + adapter.inner(shape))
	record.grad(ab*op.in*tokens, shape.gradBytes()*op.in*adapter.Rank)
	record.drop(inner + adapter.input(shape, op.shared))
	record.inputGrad(adapter, x)
	return residual
}

// These functions follow axolotl's LoRA kernels (axolotl 0.19, kernels/lora.py: LoRA_QKV, LoRA_O,
// LoRA_MLP). Each is one autograd function over all linear layers that read one tensor. It keeps
// their input once, in 16 bits, and 16-bit copies of A and B.

// fusedForward runs one linear layer of a function (matmul_lora). A quantized weight's 16-bit copy
// is freed before A and B are cast.
func (record *tape) fusedForward(adapter *Adapter) {
	shape := record.shape
	work := shape.quantForward(adapter.In, adapter.Out, record.element)
	record.add(work + record.element*adapter.Out*shape.Tokens)
	record.drop(work)
	small := fusedCopies(shape, adapter) + record.element*adapter.Rank*shape.Tokens
	record.add(small)
	record.drop(small)
}

// fusedGrads makes the 16-bit gradients of a function's adapters. It returns the bytes shared with
// the input's gradient: the output's gradient times B.
func (record *tape) fusedGrads(adapters ...*Adapter) (inner int64) {
	for _, adapter := range adapters {
		each := record.element * adapter.Rank * record.shape.Tokens
		record.add(2*each + 2*adapter.Weights()) // A times the input is freed again
		record.drop(each)
		inner += each
	}
	return inner
}

// fusedInput makes the gradient of a function's input, one linear layer after the other. The first
// product makes the tensor, and the others are added in place.
func (record *tape) fusedInput(adapters ...*Adapter) {
	shape := record.shape
	for i, adapter := range adapters {
		if work := shape.quantBackward(adapter.In, adapter.Out, record.element); i == 0 {
			weight := min(work, 2*adapter.In*adapter.Out) // its statistics are freed before the product
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

// fusedEnd ends a function: 16-bit gradients become the type of their parameters, one after another
// (torch/csrc/autograd/engine.cpp, validate_outputs).
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

// fusedOutput runs backward of LoRA_O. The gradient of its output is the residual stream's. saved
// is the bytes freed with it.
func (record *tape) fusedOutput(adapter *Adapter, saved int64) {
	inner := record.fusedGrads(adapter)
	record.fusedInput(adapter)
	record.drop(inner)
	record.fusedEnd(adapter)
	record.drop(saved + fusedCopies(record.shape, adapter))
}

// fusedInputs runs backward of LoRA_QKV; outs is the bytes of the gradients of q, k and v.
func (record *tape) fusedInputs(adapters []*Adapter, outs int64) {
	shape := record.shape
	inner := record.fusedGrads(adapters...)
	record.fusedInput(adapters...)
	record.drop(inner + outs)
	record.fusedEnd(adapters...)
	record.drop(record.element*adapters[0].In*shape.Tokens + fusedCopies(shape, adapters...))
}
