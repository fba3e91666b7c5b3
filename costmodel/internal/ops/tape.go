package ops

// tape follows the allocations of a frozen op with adapters in the order in
// which they happen: what is alive, and the adapters' gradients.
type tape struct {
	shape      *Shape
	element    int64 // bytes an element of the linear layers' outputs
	now, grads int64
	see        func(backwardPoint)
}

func (record *tape) add(bytes int64) {
	record.now += bytes
	record.see(backwardPoint{record.now, record.grads, 0})
}
func (record *tape) drop(bytes int64) { record.now -= bytes }

// turn makes a tensor of another type of one that goes.
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
	// shared: something else keeps the input. residual: the output joins the
	// residual stream.
	shared, residual bool
}

// forward runs base, A, B, "* scaling", their sum, which has the wider type,
// and the cast back (peft/tuners/lora/layer.py, Linear.forward; bnb.py casts
// before the sum). The output stays, and what the adapter keeps.
func (record *tape) forward(op linearLayer) {
	shape := record.shape
	element, ab, tokens := record.element, shape.adapterBytes(), shape.Tokens
	work := shape.quantForward(op.in, op.out, element)
	record.add(element*op.out*tokens + work)
	record.drop(work)
	if op.adapter == nil {
		return
	}
	wide := int64(0)
	if shape.AdapterCasts { // fp32 first (_cast_input_dtype), then autocast's copy of that
		wide = 4 * op.in * tokens
	}
	record.add(wide + shape.input(op.adapter, op.shared) + shape.inner(op.adapter))
	record.add(2 * ab * op.out * tokens) // B's output, and the scaled one
	record.drop(ab*op.out*tokens + wide)
	if shape.Quantize != "" {
		record.turn(ab*op.out*tokens, element*op.out*tokens)
		ab = element
	}
	sum := max(element, ab)
	record.add(sum * op.out * tokens)
	record.drop((element + ab) * op.out * tokens)
	record.turn(sum*op.out*tokens, element*op.out*tokens)
}

// stop runs the last linear layer of a block again, as far as something is
// kept: its adapter's input and A's output; without one, its weight.
func (record *tape) stop(op linearLayer) {
	if op.adapter == nil {
		return
	}
	shape := record.shape
	record.add(record.element*op.out*shape.Tokens + shape.input(op.adapter, op.shared) + shape.inner(op.adapter))
}

// waiting is what backward of a block's last linear layer holds, in addition to
// its output's gradient, when it needs the first tensor that was not kept: the
// scaled gradient for B's weight and the base's 16-bit one. A 4-bit weight is
// an attribute of its node, so that without an adapter the input's gradient is
// made first.
func (record *tape) waiting(op linearLayer) int64 {
	shape, element, tokens := record.shape, record.element, record.shape.Tokens
	switch {
	case op.adapter != nil && shape.converts() && shape.Quantize == "":
		return (shape.adapterBytes() + element) * op.out * tokens
	case op.adapter != nil:
		return shape.adapterBytes() * op.out * tokens
	case shape.Quantize != "":
		return element * op.in * tokens
	}
	return 0
}

// backward goes back through a linear layer. The gradient of its output is
// alive, and goes unless the residual stream has it too; that of its input,
// of x bytes an element, stays.
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

// adapter goes back through the sum, the scaling, B, A and the input's cast,
// and reports whether the base shares its output's gradient with the residual
// stream. If the sum is fp32, the base gets a 16-bit copy of its gradient
// (torch/csrc/autograd/engine.cpp, validate_outputs).
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
	record.drop(ab*op.out*tokens + shape.inner(adapter))
	record.grad(ab*op.in*tokens, shape.gradBytes()*op.in*adapter.Rank)
	record.drop(inner + shape.input(adapter, op.shared))
	record.turn(ab*op.in*tokens, x*op.in*tokens)
	return residual
}
