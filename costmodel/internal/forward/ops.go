package forward

// linear is nn.Linear of so many rows.
func (tape *tape) linear(mod module, name string, rows int64) *value {
	in, out := mod.inward(name), mod.out(name)
	tape.flops += 2 * float64(rows) * float64(in) * float64(out)
	tape.traffic += float64(tape.width) * (float64(rows)*float64(in) + float64(in)*float64(out))
	weight := tape.weight(mod, name)
	result := tape.new(rows * out)
	tape.drop(weight)
	return result
}

// layerNorm is a kernel that gives the result, and a mean and a deviation a row
// that nobody takes (native_layer_norm).
func (tape *tape) layerNorm(rows, dim int64) *value {
	out := tape.new(rows * dim)
	mean, deviation := tape.single(rows), tape.single(rows)
	tape.drop(mean, deviation)
	return out
}

// rmsNorm is torch.nn.RMSNorm: one kernel (_fused_rms_norm), a deviation a row
// beside.
func (tape *tape) rmsNorm(elements, dim int64) *value {
	out := tape.new(elements)
	tape.drop(tape.single(elements / dim))
	return out
}

// ownRMSNorm is diffusers' RMSNorm (normalization.py): the squares in single
// precision, the product too until the weight comes.
func (tape *tape) ownRMSNorm(elements, dim int64) *value {
	upcast := tape.single(elements)
	square := tape.single(elements)
	tape.drop(upcast)
	variance := tape.single(elements / dim)
	tape.drop(square)
	raised := tape.single(elements / dim)
	root := tape.single(elements / dim)
	tape.drop(raised)
	scaled := tape.single(elements)
	tape.drop(root)
	if tape.width < 4 {
		rounded := tape.new(elements)
		tape.drop(scaled)
		scaled = rounded
	}
	out := tape.new(elements)
	tape.drop(scaled, variance)
	return out
}

// modulated is norm(x) * (1 + scale) + shift in one expression.
func (tape *tape) modulated(batch, rows, dim int64) *value {
	normed := tape.layerNorm(rows, dim)
	return tape.scaleShift(normed, batch, rows*dim, dim)
}

// scaleShift is x * (1 + scale) + shift, where x is a value of the expression
// itself and goes when it is multiplied.
func (tape *tape) scaleShift(normed *value, batch, elements, dim int64) *value {
	onePlus := tape.new(batch * dim)
	scaled := tape.new(elements)
	tape.drop(normed, onePlus)
	out := tape.new(elements)
	tape.drop(scaled)
	return out
}

// modulation is linear(silu(temb)): vectors that the block's gates are views of.
func (tape *tape) modulation(mod module, name string, batch int64) *value {
	active := tape.new(batch * mod.inward(name))
	out := tape.linear(mod, name, batch)
	tape.drop(active)
	return out
}

// timestepEmbedding is TimestepEmbedding: two projections with a SiLU between.
func (tape *tape) timestepEmbedding(mod module, rows int64) *value {
	first := tape.linear(mod, "linear_1", rows)
	active := tape.new(rows * mod.out("linear_1"))
	tape.drop(first)
	out := tape.linear(mod, "linear_2", rows)
	tape.drop(active)
	return out
}

// feedForward is FeedForward of rows: each step's result takes the name of what
// it was made of.
func (tape *tape) feedForward(mod module, rows int64, gated bool) *value {
	hidden := mod.inward("net.2")
	first := tape.linear(mod, "net.0.proj", rows)
	active := tape.new(rows * hidden)
	if gated { // GEGLU: values × gelu(gates), both views of one projection
		product := tape.new(rows * hidden)
		tape.drop(active)
		active = product
	}
	tape.drop(first)
	out := tape.linear(mod, "net.2", rows)
	tape.drop(active)
	return out
}

// rotated is apply_rotary_emb (embeddings.py) with real cosines and sines: four
// tensors in single precision beside the turned one.
func (tape *tape) rotated(elements int64) *value {
	negative := tape.new(elements / 2)
	turned := tape.new(elements)
	tape.drop(negative)
	upcast := tape.single(elements)
	cosine := tape.single(elements)
	tape.drop(upcast)
	upcast = tape.single(elements)
	sine := tape.single(elements)
	tape.drop(upcast)
	total := tape.single(elements)
	tape.drop(cosine, sine)
	out := tape.new(elements)
	tape.drop(total, turned)
	return out
}

// attend is scaled_dot_product_attention without a mask and without
// gradients, as one GPU runs it, or, of queries' own keys, as xDiT does.
func (tape *tape) attend(batch, heads, queries, keys, dim int64) *value {
	if queries == keys && tape.gpus > 1 {
		return tape.usp(usp{image: batch * queries * dim, batch: batch, dim: dim, heads: heads, fill: tape.gpus > tape.ring})
	}
	out := tape.kernel(batch*queries*dim, 0)
	tape.flops += 4 * float64(batch) * float64(queries) * float64(keys) * float64(dim)
	return out
}

// kernel is cuDNN's, which torch 2.11 prefers on Hopper (sdp_utils.cpp:
// check_prefer_cudnn_attention): the result alone, or the logarithms of the sums
// too; a seed, an offset and a workspace are a quantum each.
func (tape *tape) kernel(elements, logarithms int64) *value {
	var sums *value
	if logarithms > 0 {
		sums = tape.single(logarithms)
	}
	seed, offset := tape.alloc(1), tape.alloc(1)
	out := tape.new(elements)
	tape.drop(tape.alloc(1), seed, offset, sums)
	return out
}

// split copies a part of the rows of a batch, which lies apart in every
// sequence; one sequence's part is a view.
func (tape *tape) split(whole *value, batch, elements int64) *value {
	if batch == 1 {
		return whole.hold()
	}
	return tape.new(elements)
}
