package replay

// Attention is modeling_llama.py LlamaAttention.forward with a flash kernel.
type Attention struct {
	Query, Key, Value, Output *Linear
	Fused                     bool // Query is the one projection of all three
	Heads, KVHeads, HeadDim   int64
	QueryNorm, KeyNorm        *Norm
	Rope                      bool
	Turn                      Turn
	// By is what computes it; Masked: with a mask, for which keys and values are
	// repeated (sdpa_attention.py, use_gqa_in_sdpa).
	By     Kernel
	Masked bool
}

// Kernel is one of SDPA's.
type Kernel int

// Flash, Efficient and Math are its kernels, the last of several operations that write the scores down.
const (
	Flash Kernel = iota
	Efficient
	Math
)

func (op *Attention) widths() (q, k int64) { return op.Heads * op.HeadDim, op.KVHeads * op.HeadDim }

func (op *Attention) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	var parts projected
	if op.Fused {
		parts = op.projectAll(step, layer, x)
	} else {
		parts = op.project(step, layer, x)
	}
	if step.Early {
		step.Drop(x)
		x = nil
	}
	q, _ := op.widths()
	each := step.Tokens * step.Element
	query, key := parts.query, parts.key
	if op.Rope {
		query, key = op.rotateBoth(step, query, key)
	}
	value := parts.value
	if step.Caches {
		key, value = op.update(step, key, value)
	}
	var repeated func(key, value *Tensor) (k, v *Tensor)
	if op.By == Math || op.Masked {
		key, value, repeated = op.repeat(step, key, value)
	}
	out, kernelBack := op.kernelOf()(step, query, key, value)
	read := out.Keep()
	if op.By == Math || op.By == Flash && op.Fused && op.Rope && op.Turn == TurnAsIs { // q is laid out by heads, and so is the output, which .contiguous() copies
		step.Drop(read)
		read = step.New(q * each)
	}
	y, outputBack := step.linear(op.Output, layer, read, step.recomputed)
	step.Drop(read, out, query, key, value, x) // the last ones are variables of the call
	step.Leave(layer, "", false)
	return y, func(grad *Tensor) *Tensor {
		step.Enter(layer, "", true)
		defer step.Leave(layer, "", true)
		inner := outputBack(grad)
		if inner == nil {
			return nil
		}
		queryGrad, keyGrad, valueGrad := kernelBack(inner)
		if repeated != nil {
			keyGrad, valueGrad = repeated(keyGrad, valueGrad)
		}
		return parts.back(queryGrad, keyGrad, valueGrad)
	}
}

// update joins keys and values to the past tokens' (cache_utils.py, DynamicLayer.update).
func (op *Attention) update(step *Step, key, value *Tensor) (k, v *Tensor) {
	_, narrow := op.widths()
	size := narrow * step.Batch * (step.past + step.Length) * step.Element
	past := step.cached[op]
	k = step.New(size)
	step.Drop(past[0])
	v = step.New(size)
	step.Drop(past[1], key, value)
	step.cached[op] = [2]*Tensor{k, v}
	return k.Keep(), v.Keep()
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
		query, queryNorm = op.QueryNorm.within(step, layer, "q_norm", query)
	}
	key, keyBack := step.linear(op.Key, layer, x, false)
	if op.KeyNorm != nil {
		key, keyNorm = op.KeyNorm.within(step, layer, "k_norm", key)
	}
	value, valueBack := step.linear(op.Value, layer, x, false)
	q, k := op.widths()
	each := step.Tokens * step.Element
	return projected{query, key, value, func(queryGrad, keyGrad, valueGrad *Tensor) *Tensor {
		if op.Rope {
			keyGrad = op.rotateBack(step, k*each, keyGrad)
			queryGrad = op.rotateBack(step, q*each, queryGrad)
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

// both adds two gradients of the residual's width, if they are asked for.
func (step *Step) both(in, more *Tensor) *Tensor {
	if more == nil {
		return in
	}
	return step.sum(step.stream(), in, more)
}

// projectAll is one projection with q, k and v as slices (modeling_phi3.py, Phi3Attention); v keeps
// all.
func (op *Attention) projectAll(step *Step, layer int, x *Tensor) projected {
	all, allBack := step.linear(op.Query, layer, x, false)
	q, k := op.widths()
	each := step.Tokens * step.Element
	return projected{all, all.Keep(), all.Keep(), func(queryGrad, keyGrad, valueGrad *Tensor) *Tensor {
		if op.Rope {
			keyGrad = op.rotateBack(step, k*each, keyGrad)
			queryGrad = op.rotateBack(step, q*each, queryGrad)
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

// Turn is the type in which q and k turn.
type Turn int

// In their type, in fp32 cosines' (modeling_olmo2.py), or cast first (modeling_modernbert.py).
const (
	TurnAsIs Turn = iota
	TurnWide
	TurnCast
)

// rotateBoth turns q and k (modeling_llama.py, apply_rotary_pos_emb).
func (op *Attention) rotateBoth(step *Step, query, key *Tensor) (q, k *Tensor) {
	wide, narrow := op.widths()
	each := step.Tokens * step.Element
	q, k = op.rotate(step, wide*each), op.rotate(step, narrow*each)
	if op.Turn != TurnAsIs && step.Element < 4 { // both are cast back
		turned := [2]*Tensor{q, k}
		q, k = step.New(wide*each), step.New(narrow*each)
		step.Drop(turned[:]...)
	}
	step.Drop(query, key)
	return q, k
}

// rotate is x·cos + rotate_half(x)·sin.
func (op *Attention) rotate(step *Step, size int64) *Tensor {
	wide, half := size, size/2
	if op.Turn != TurnAsIs && step.Element < 4 {
		wide = 4 / step.Element * size
	}
	cast := func() *Tensor { return nil }
	if op.Turn == TurnCast && wide > size {
		half = wide / 2
		cast = func() *Tensor { return step.New(wide) }
	}
	first := cast()
	turned := step.New(wide) // x·cos
	step.Drop(first)
	second := cast()
	negative := step.New(half)    // -x2
	rotated := step.New(2 * half) // cat
	step.Drop(negative, second)
	sine := step.New(wide)
	step.Drop(rotated)
	out := step.New(wide)
	step.Drop(turned, sine)
	return out
}

// rotateBack is the backward of the product with sin, cat, negation, slices, and product with cos.
func (op *Attention) rotateBack(step *Step, size int64, grad *Tensor) *Tensor {
	wide, each := size, size
	if op.Turn != TurnAsIs && step.Element < 4 {
		wide = 4 / step.Element * size
		cast := step.New(wide)
		step.Drop(grad)
		grad = cast
	}
	if op.Turn == TurnCast {
		each = wide
	}
	narrow := func(tensor *Tensor, from, to int64) *Tensor {
		if from == to {
			return tensor
		}
		out := step.New(to)
		step.Drop(tensor)
		return out
	}
	sine := narrow(step.New(wide), wide, each)
	half := step.New(each / 2)
	sum := step.New(each)
	step.Drop(half)
	slice := step.New(each)
	step.Drop(sine, slice)
	sum = narrow(sum, each, size)
	cosine := step.New(wide)
	step.Drop(grad)
	cosine = narrow(cosine, wide, size)
	step.Drop(cosine)
	return sum
}

// repeat gives each query head keys and values of its own (repeat_kv); backward sums them up.
func (op *Attention) repeat(step *Step, key, value *Tensor) (k, v *Tensor, backward func(key, value *Tensor) (k, v *Tensor)) {
	if op.KVHeads == op.Heads {
		return key, value, nil
	}
	wide, narrow := op.widths()
	each := step.Tokens * step.Element
	k, v = step.New(wide*each), step.New(wide*each)
	step.Drop(key, value)
	return k, v, func(key, value *Tensor) (*Tensor, *Tensor) {
		valueGrad := step.New(narrow * each)
		step.Drop(value)
		keyGrad := step.New(narrow * each)
		step.Drop(key)
		return keyGrad, valueGrad
	}
}

// attend is a kernel: it takes no hold on its inputs; backward takes one on the output's gradient.
type attend func(step *Step, query, key, value *Tensor) (*Tensor, func(*Tensor) (q, k, v *Tensor))

func (op *Attention) kernelOf() attend {
	switch op.By {
	case Efficient:
		return op.efficient
	case Math:
		return op.math
	case Flash:
	}
	return op.kernel
}

// efficient is the memory-efficient kernel (attention_backward.cu, _efficient_attention_backward),
// with the mask as a bias of its own (attention.cpp, convert_boolean_attn_mask).
func (op *Attention) efficient(step *Step, query, key, value *Tensor) (*Tensor, func(*Tensor) (q, k, v *Tensor)) {
	wide, _ := op.widths()
	each := step.Tokens * step.Element
	var bias *Tensor
	if op.Masked {
		bias = step.New(step.Tokens * step.Length * step.Element)
	}
	rows := 4 * op.Heads * step.Batch * ((step.Length + 31) / 32 * 32)
	out, sums, seed, offset := step.New(wide*each), step.New(rows), step.New(8), step.New(8)
	retained := []*Tensor{step.save(seed), step.save(offset), step.save(sums), step.save(out), step.save(value), step.save(key), step.save(query)}
	if op.Masked {
		retained = append(retained, step.save(bias))
	}
	step.Drop(sums, seed, offset, bias)
	return out, func(grad *Tensor) (*Tensor, *Tensor, *Tensor) {
		queryGrad, keyGrad, valueGrad := step.New(wide*each), step.New(wide*each), step.New(wide*each)
		dots := step.New(rows)
		var sum *Tensor
		if step.Element < 4 {
			sum = step.New(4 * wide * step.Tokens)
		}
		step.Drop(dots, sum, grad)
		step.Drop(retained...)
		return queryGrad, keyGrad, valueGrad
	}
}

// math is _scaled_dot_product_attention_math: q and k scaled, scores, softmax, its product with v.
func (op *Attention) math(step *Step, _, _, value *Tensor) (*Tensor, func(*Tensor) (q, k, v *Tensor)) {
	wide, _ := op.widths()
	each := step.Tokens * step.Element
	scores := op.Heads * step.Tokens * step.Length * step.Element
	bias := step.New(step.Length * step.Length * step.Element)
	queries, keys := step.New(wide*each), step.New(wide*each)
	raw := step.New(scores)
	soft := step.New(scores)
	step.Drop(raw, bias)
	out := step.New(wide * each)
	retained := []*Tensor{step.save(queries), step.save(keys), step.save(soft), step.save(value)}
	step.Drop(queries, keys, soft)
	return out, func(grad *Tensor) (*Tensor, *Tensor, *Tensor) {
		softGrad, valueGrad := step.New(scores), step.New(wide*each)
		step.Drop(grad, retained[3])
		product := step.New(scores)
		rawGrad := step.New(scores)
		step.Drop(product, softGrad, retained[2])
		queriesGrad, keysGrad := step.New(wide*each), step.New(wide*each)
		step.Drop(rawGrad, retained[0], retained[1])
		keyGrad := step.New(wide * each)
		step.Drop(keysGrad)
		queryGrad := step.New(wide * each)
		step.Drop(queriesGrad)
		return queryGrad, keyGrad, valueGrad
	}
}

// kernel is PyTorch's flash kernel (attention.cu, flash_api.cpp mha_fwd, mha_bwd): the output,
// log-sum-exp, seed and offset. Backward has a workspace of rows' dot products, an fp32 accumulator
// of dq, and expanded dk and dv under grouped queries.
func (op *Attention) kernel(step *Step, query, key, value *Tensor) (*Tensor, func(*Tensor) (q, k, v *Tensor)) {
	q, k := op.widths()
	each := step.Tokens * step.Element
	rows := 4 * op.Heads * step.Tokens
	out, sums, seed, offset := step.New(q*each), step.New(rows), step.New(8), step.New(8)
	retained := []*Tensor{step.save(key), step.save(query), step.save(value), step.save(out), step.save(sums), step.save(seed), step.save(offset)}
	step.Drop(sums, seed, offset)
	return out, func(grad *Tensor) (*Tensor, *Tensor, *Tensor) {
		queryGrad, keyGrad, valueGrad := step.New(q*each), step.New(k*each), step.New(k*each)
		padded := step.Batch * ((step.Length + 127) / 128 * 128)
		work := 4 * op.Heads * padded * (1 + (op.HeadDim+31)/32*32)
		if op.KVHeads < op.Heads {
			work += 2 * q * each
		}
		step.through(work)
		step.Drop(grad)
		step.Drop(retained...)
		return queryGrad, keyGrad, valueGrad
	}
}
