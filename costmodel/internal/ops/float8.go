package ops

import "github.com/devmap-dev/devmap/modelgraph"

// cast8 makes an 8-bit copy of so many elements. Its peak has the product with the scale and the
// clamped product in fp32 (float8_training_tensor.py, _ToFloat8ConstrFunc.forward; float8_utils.py,
// to_fp8_saturated).
func (record *tape) cast8(size int64) {
	record.add(9 * size)
	record.drop(8 * size)
}

// product8 multiplies 8-bit matrices of a and b elements. turnsA: torch's kernel needs a in the
// other order, which makes a copy. turnsB is the same for b.
func (record *tape) product8(a, b int64, turnsA, turnsB bool, result func()) {
	start := record.now
	pads := record.shape.Float8.Pads
	if pads {
		record.add(a + b)
	}
	for _, operand := range []struct {
		size  int64
		turns bool
	}{{a, turnsA}, {b, turnsB}} {
		if operand.turns {
			record.add(operand.size)
		}
		if operand.turns && pads { // the padded copy is freed
			record.drop(operand.size)
		}
	}
	copies := record.now - start
	result()
	record.drop(copies)
}

// weight8 makes the 8-bit copy of a weight, unless it was gathered in 8 bits, and returns its
// bytes.
func (record *tape) weight8(in, out int64) int64 {
	if record.shape.Float8.Gathered {
		return 0
	}
	record.cast8(in * out)
	return in * out
}

// forward8 runs a linear layer and keeps its output.
func (record *tape) forward8(in, out int64) {
	tokens := record.shape.Tokens
	record.cast8(in * tokens)
	weight := record.weight8(in, out)
	record.product8(in*tokens, in*out, false, false, func() { record.add(record.element * out * tokens) })
	record.drop(in*tokens + weight)
}

// backward8 runs backward of a linear layer (matmul_with_hp_or_float8_args.backward). The output's
// gradient exists, and is freed unless the residual stream has it too. The input's gradient, of x
// bytes per element, remains. saved is the bytes freed with the node.
func (record *tape) backward8(op linearLayer, x, saved int64) {
	shape, element, matrix := record.shape, record.element, op.in*op.out
	ahead, back := op.in*shape.Tokens, op.out*shape.Tokens
	if op.residual && shape.streamBytes() != element { // autocast: a cast of the stream's gradient
		record.add(element * back)
		op.residual = false
	}
	record.cast8(back)
	weight := record.weight8(op.in, op.out)
	record.product8(back, matrix, false, true, func() { record.add(element * ahead) })
	record.cast8(back)
	record.cast8(ahead)
	made, each := element*matrix, shape.weightBytes()
	record.product8(back, ahead, true, true, func() {
		if each == element {
			record.grad(0, made)
		} else {
			record.add(made)
		}
	})
	record.drop(2*back + ahead + weight + saved)
	if !op.residual {
		record.drop(element * back)
	}
	if each != element { // torch/csrc/autograd/engine.cpp, validate_outputs
		record.grad(0, each*matrix)
		record.drop(made)
	}
	record.turn(element*ahead, x*ahead)
}

// float8 adds the copies of Float8Linear to a trained op.
func (cost *Cost) float8(asked operation, shape *Shape) {
	switch op := asked.(type) {
	case mlp:
		cost.float8MLP(op, shape)
	case attention:
		dims := op.geometry(shape)
		cost.float8Attention(op, &dims, shape)
	}
}

// float8MLP is [Cost.float8] of a feed-forward network.
func (cost *Cost) float8MLP(op mlp, shape *Shape) {
	element, act := shape.elementBytes(), activationExtra(op.Activation)
	stream, fN, cast := shape.streamBytes()*op.Dim*shape.Tokens, element*op.Hidden*shape.Tokens, shape.casts(1, op.Dim, 0)
	tensors, _, _, _ := op.counts(shape)
	fused := op.oneKernel(shape)
	if fused {
		act = 0
	}
	forward := tape{shape: shape, element: element, now: 2*stream + cost.Memory.Saved - tensors*fN, see: func(point backwardPoint) {
		cost.Memory.Forward = max(cost.Memory.Forward, point.activations)
	}}
	forward.forward8(op.Dim, op.Hidden)
	forward.add(act * fN)
	if op.Gated {
		forward.forward8(op.Dim, op.Hidden)
		forward.add(fN) // the product
	}
	forward.forward8(op.Hidden, op.Dim)

	back := tape{shape: shape, element: element, now: stream, see: func(point backwardPoint) { cost.peak(point) }}
	into := linearLayer{in: op.Dim, out: op.Hidden}
	back.backward8(linearLayer{in: op.Hidden, out: op.Dim, residual: true}, element, fN)
	switch {
	case fused: // gradients overwrite gate and up
		back.drop(fN)
	case op.Gated:
		back.add(2 * fN)
		back.drop(3 * fN) // the product's gradient, up and activation
	}
	if op.Gated {
		back.backward8(into, shape.streamBytes(), cast)
	}
	if !fused {
		back.add(fN)
		back.drop((1 + act) * fN)
	}
	back.backward8(into, shape.streamBytes(), cast)
}

// float8Attention is [Cost.float8] of an attention block.
func (cost *Cost) float8Attention(op attention, dims *geo, shape *Shape) {
	element, tokens := shape.elementBytes(), shape.Tokens
	stream, cast := shape.streamBytes()*op.Dim*tokens, shape.casts(1, op.in(), 0)
	forward := tape{shape: shape, element: element, now: 2*stream + cost.Memory.Saved, see: func(point backwardPoint) {
		cost.Memory.Forward = max(cost.Memory.Forward, point.activations)
	}}
	forward.forward8(dims.out, op.Dim)
	back := tape{shape: shape, element: element, now: stream, see: func(point backwardPoint) { cost.peak(point) }}
	back.backward8(linearLayer{in: dims.out, out: op.Dim, residual: true}, element, 0)
	back.add(cost.back - element*tokens*dims.out)
	inputs := element * tokens * (dims.q + dims.k + dims.v)
	back.drop(cost.back - inputs)
	back.drop(cost.Memory.Saved - 3*cast)
	for i, width := range []int64{dims.v, dims.k, dims.q} {
		back.backward8(linearLayer{in: op.in(), out: width}, shape.streamBytes(), cast)
		if i > 0 {
			back.drop(shape.streamBytes() * op.in() * tokens) // added in place
		}
	}
}

// Float8s reports an op whose linear layers have 8-bit copies.
func Float8s(op modelgraph.Op) bool {
	switch op := op.(type) {
	case modelgraph.Attention:
		_, plain := operationOf(op).(attention)
		return plain && !op.Fused && !op.Cross && !op.Gated && !op.SharedKV
	case modelgraph.MLP:
		return !op.Fused
	}
	return false
}
