package replay

// Attention is modeling_llama.py LlamaAttention.forward with a flash kernel.
type Attention struct {
	Query, Key, Value, Output *Linear
	Fused                     bool // Query is the one projection of all three
	Heads, KVHeads, HeadDim   int64
	QueryNorm, KeyNorm        *Norm
	Rope                      bool
}

func (op *Attention) widths() (q, k int64) { return op.Heads * op.HeadDim, op.KVHeads * op.HeadDim }

func (op *Attention) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	var parts projected
	if op.Fused {
		parts = op.projectAll(step, layer, x)
	} else {
		parts = op.project(step, layer, x)
	}
	step.Drop(x)
	q, k := op.widths()
	each := step.Tokens * step.Element
	query, key := parts.query, parts.key
	if op.Rope {
		query, key = step.rotate(q*each, query, step.grads), step.rotate(k*each, key, step.grads)
		step.Drop(parts.query, parts.key)
	}
	out, kernelBack := op.kernel(step, query, key, parts.value)
	read := out.Keep()
	if op.Fused && op.Rope { // q is laid out by heads, and so is the output, which .contiguous() copies
		step.Drop(read)
		read = step.New(q * each)
	}
	step.Drop(query, key, parts.value)
	y, outputBack := step.linear(op.Output, layer, read, false)
	step.Drop(read, out)
	step.Leave(layer, "", false)
	return y, func(grad *Tensor) *Tensor {
		step.Enter(layer, "", true)
		defer step.Leave(layer, "", true)
		inner := outputBack(grad)
		if inner == nil {
			return nil
		}
		return parts.back(kernelBack(inner))
	}
}

// projected are q, k and v, and the backward of what made them.
type projected struct {
	query, key, value *Tensor
	back              func(query, key, value *Tensor) *Tensor
}

func (op *Attention) project(step *Step, layer int, x *Tensor) projected {
	query, queryBack := step.linear(op.Query, layer, x, false)
	var queryNorm, keyNorm back
	if op.QueryNorm != nil {
		query, queryNorm = op.QueryNorm.rms(step, query)
	}
	key, keyBack := step.linear(op.Key, layer, x, false)
	if op.KeyNorm != nil {
		key, keyNorm = op.KeyNorm.rms(step, key)
	}
	value, valueBack := step.linear(op.Value, layer, x, false)
	q, k := op.widths()
	each := step.Tokens * step.Element
	return projected{query, key, value, func(queryGrad, keyGrad, valueGrad *Tensor) *Tensor {
		if op.Rope {
			keyGrad = step.rotateBack(k*each, keyGrad)
			queryGrad = step.rotateBack(q*each, queryGrad)
		}
		in := valueBack(valueGrad)
		if keyNorm != nil {
			keyGrad = keyNorm(keyGrad)
		}
		in = step.both(in, keyBack(keyGrad))
		if queryNorm != nil {
			queryGrad = queryNorm(queryGrad)
		}
		return step.both(in, queryBack(queryGrad))
	}}
}

// both adds two gradients of the residual's width, either of which may not be
// asked for.
func (step *Step) both(in, more *Tensor) *Tensor {
	if more == nil {
		return in
	}
	return step.sum(step.stream(), in, more)
}

// projectAll is one projection of which q, k and v are slices
// (modeling_phi3.py, Phi3Attention): v keeps the whole of it.
func (op *Attention) projectAll(step *Step, layer int, x *Tensor) projected {
	all, allBack := step.linear(op.Query, layer, x, false)
	q, k := op.widths()
	each := step.Tokens * step.Element
	return projected{all, all.Keep(), all.Keep(), func(queryGrad, keyGrad, valueGrad *Tensor) *Tensor {
		if op.Rope {
			keyGrad = step.rotateBack(k*each, keyGrad)
			queryGrad = step.rotateBack(q*each, queryGrad)
		}
		whole := (q + 2*k) * each // slice_backward of each, added up
		sum := step.New(whole)
		step.Drop(valueGrad)
		more := step.New(whole)
		step.Drop(keyGrad, more)
		more = step.New(whole)
		step.Drop(queryGrad, more)
		return allBack(sum)
	}}
}

// rotate is x·cos + rotate_half(x)·sin; it takes no hold.
func (step *Step) rotate(size int64, x *Tensor, _ bool) *Tensor {
	turned := step.New(size)   // x·cos
	half := step.New(size / 2) // -x2
	rotated := step.New(size)  // cat
	step.Drop(half)
	sine := step.New(size)
	step.Drop(rotated)
	out := step.New(size)
	step.Drop(turned, sine)
	return out
}

// rotateBack goes back through the product with sin, cat, the negation, both
// slices, and the product with cos.
func (step *Step) rotateBack(size int64, grad *Tensor) *Tensor {
	sine := step.New(size)
	half := step.New(size / 2)
	sum := step.New(size)
	step.Drop(half)
	slice := step.New(size)
	step.Drop(sine, slice)
	cosine := step.New(size)
	step.Drop(grad, cosine)
	return sum
}

// kernel is PyTorch's flash kernel (attention.cu, flash_api.cpp mha_fwd,
// mha_bwd): the output, log-sum-exp, seed and offset; backward the dot products
// of rows, an fp32 accumulator of dq, and expanded dk and dv under grouped
// queries.
func (op *Attention) kernel(step *Step, query, key, value *Tensor) (*Tensor, func(*Tensor) (q, k, v *Tensor)) {
	q, k := op.widths()
	each := step.Tokens * step.Element
	rows := 4 * op.Heads * step.Tokens
	out, sums, seed, offset := step.New(q*each), step.New(rows), step.New(8), step.New(8)
	kept := []*Tensor{step.save(seed), step.save(offset), step.save(sums), step.save(out), step.save(value), step.save(key), step.save(query)}
	step.Drop(sums, seed, offset)
	return out, func(grad *Tensor) (*Tensor, *Tensor, *Tensor) {
		queryGrad, keyGrad, valueGrad := step.New(q*each), step.New(k*each), step.New(k*each)
		padded := (step.Length + 127) / 128 * 128
		dots := step.New(4 * op.Heads * step.Batch * padded)
		sum := step.New(4 * op.Heads * step.Batch * padded * ((op.HeadDim + 31) / 32 * 32))
		var keys, values *Tensor
		if op.KVHeads < op.Heads {
			keys, values = step.New(q*each), step.New(q*each)
		}
		step.Drop(dots, sum, keys, values, grad)
		step.Drop(kept...)
		return queryGrad, keyGrad, valueGrad
	}
}
