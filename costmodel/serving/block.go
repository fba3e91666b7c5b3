package serving

// block adds a block with attention, and returns the hidden state after it.
func (pass *pass) block(block *Block, hidden, before *value, last bool) *value {
	form := &block.form
	normed := pass.norm(hidden, before, form)
	attended := pass.attention(block, normed)
	if last && !form.late {
		attended, hidden = pass.pick(attended), pass.pick(hidden)
		if form.parallel {
			normed = pass.pick(normed)
		}
	}
	if form.after && form.feedNorm {
		attended = pass.norm(attended, nil, form)
	}
	if form.parallel {
		fed := pass.feed(block, normed)
		return over(over(fed, hidden), attended)
	}
	middle := over(attended, hidden)
	fed := pass.feed(block, pass.norm(middle, nil, form))
	if form.afterFeed {
		fed = pass.norm(fed, nil, form)
	}
	return pass.sum(form, fed, middle)
}

// pick takes the rows of the tokens with logits.
func (pass *pass) pick(of *value) *value {
	if pass.rows == nil {
		pass.rows = pass.input(4 * pass.logits())
	}
	return made([3]int64{of.shape[0], pass.logits(), 1}, of, pass.rows)
}

func (pass *pass) logits() int64 {
	return min(pass.set.UBatch, pass.set.Context*pass.set.Sequences, pass.set.Outputs)
}

// attention adds the products of attention (llama-graph.cpp, build_qkv and build_attn).
func (pass *pass) attention(block *Block, normed *value) *value {
	form, u := &block.form, pass.tokens
	queries := [3]int64{block.head, block.Heads, u}
	keys := [3]int64{block.head, block.Key / max(1, block.head), u}
	values := [3]int64{block.Value / max(1, keys[1]), keys[1], u}
	var q, k, v *value
	if form.joined {
		whole := biasedIf(form.biased, made([3]int64{block.head*block.Heads + block.Key + block.Value, u, 1}, outside, normed))
		q, k, v = viewed(queries, whole), viewed(keys, whole), viewed(values, whole)
	} else {
		product := func(shape [3]int64) *value {
			return viewed(shape, biasedIf(form.biased, made([3]int64{shape[0] * shape[1], u, 1}, outside, normed)))
		}
		q, k, v = product(queries), product(keys), product(values)
	}
	if form.normed {
		q, k = pass.norm(q, nil, form), pass.norm(k, nil, form)
	}
	if !form.unturned {
		if pass.places == nil {
			pass.places = pass.input(4 * u * pass.model.positions)
		}
		q, k = over(q, pass.places), over(k, pass.places)
	}
	ofKeys := rotation{side: turning(pass.set.KeyType, block.head), slides: block.Sliding}
	q, k = pass.turn(q, ofKeys), pass.turn(k, ofKeys)
	ofValues := rotation{side: min(turning(pass.set.ValueType, values[0]), leastTurn), values: true, slides: block.Sliding} // build_input_v_rot
	v = pass.turn(v, ofValues)
	pass.expand(q)
	slides := pass.model.slides()
	if slides {
		pass.expand(k)
		pass.expand(v)
	} else {
		pass.expand(v)
		pass.expand(k)
	}
	with := pass.maskOf(block.Sliding)
	stored := func(of, rows *value) {
		flat := viewed([3]int64{of.shape[0] * of.shape[1], u, 1}, of)
		pass.expand(&value{of: outside, from: []*value{outside, flat, rows}})
	}
	stored(k, with.keys)
	stored(v, with.values)
	turned := viewed([3]int64{block.head, u, block.Heads}, viewed(queries, q))
	kernel := made([3]int64{values[0], block.Heads, u}, turned, outside, outside, with.cells)
	kernel.size += pass.converted(block, kernel.size)
	flat := viewed([3]int64{values[0] * block.Heads, u, 1}, kernel)
	pass.expand(flat)
	flat = pass.turn(flat, ofValues)
	return biasedIf(form.outBiased, made([3]int64{pass.model.Width, u, 1}, outside, flat))
}

// converted is the space after the output of CUDA's flash attention for keys and values of the cache
// in fp16, if they have another type (fattn-common.cuh, ggml_cuda_flash_attn_ext_get_f16_extra_data).
// A pass of two tokens or less reads them as they are (fattn.cu, ggml_cuda_get_best_fattn_kernel).
func (pass *pass) converted(block *Block, output int64) (size int64) {
	const fp16, least, alignment = 2, 2, 128
	set := pass.set
	if set.Alignment != 0 || pass.tokens <= least {
		return 0
	}
	cells := set.cellsOf(pass.model, block)
	if set.KeyType != "f16" {
		size = padded(output, alignment) - output + fp16*cells*block.Key
	}
	if set.ValueType != "f16" {
		size = padded(output+size, alignment) - output + fp16*cells*block.Value
	}
	return size
}

// rotation is a matrix that rotates quantised keys, with their queries, or values.
type rotation struct {
	side           int64 // 0: none
	values, slides bool
}

// leastTurn is the side of the smallest matrix that rotates a quantised cache.
const leastTurn = 64

// turning is the side of the matrix that rotates quantised keys, the largest power of two in a
// head's width; 0: there is none (llama-kv-cache.cpp, attn_rot_k and build_input_k_rot).
func turning(kind string, head int64) int64 {
	if cacheTypes[kind][0] == 1 || head == 0 || head%leastTurn != 0 {
		return 0
	}
	return head & -head
}

// turn rotates a value (llama-impl.h, llama_mul_mat_hadamard).
func (pass *pass) turn(of *value, by rotation) *value {
	const fp32 = 4
	if by.side == 0 {
		return of
	}
	if pass.turns[by] == nil {
		pass.turns[by] = pass.input(fp32 * by.side * by.side)
	}
	flat := viewed([3]int64{by.side, of.shape[0] * of.shape[1] * of.shape[2] / by.side, 1}, of)
	return viewed(of.shape, made(flat.shape, pass.turns[by], flat))
}

// feed adds the feed-forward (llama-graph.cpp, build_ffn).
func (pass *pass) feed(block *Block, normed *value) *value {
	form, u := &block.form, normed.shape[1]
	if form.experts {
		chosen := pass.choose(block, normed)
		if form.shared > 0 {
			chosen = over(chosen, pass.shared(form, normed, u))
		}
		return chosen
	}
	return pass.dense(block.FeedForward, form, normed, u)
}

func (pass *pass) dense(width int64, form *form, normed *value, u int64) *value {
	shape := [3]int64{width, u, 1}
	up := func() *value { return biasedIf(form.feedBiased, made(shape, outside, normed)) }
	var active *value
	switch {
	case form.gateJoined:
		active = made(shape, made([3]int64{2 * width, u, 1}, outside, normed))
	case form.gated:
		active = made(shape, up(), up())
	default:
		active = over(up())
	}
	return biasedIf(form.feedBiased, made([3]int64{pass.model.Width, u, 1}, outside, active))
}

// shared adds the expert of all tokens, with its gate if it has one (models/qwen2moe.cpp).
func (pass *pass) shared(form *form, normed *value, u int64) *value {
	var gate *value
	if form.sharedGate {
		logit := made([3]int64{1, u, 1}, outside, normed)
		gate = over(over(logit), logit)
	}
	fed := pass.dense(form.shared, form, normed, u)
	if gate != nil {
		fed = over(fed, gate)
	}
	return fed
}

// choose adds a mixture of experts (llama-graph.cpp, build_moe_ffn).
func (pass *pass) choose(block *Block, normed *value) *value {
	model, form, u := pass.model, &block.form, normed.shape[1]
	used := model.ExpertsUsed
	logits := biasedIf(form.biases, made([3]int64{model.Experts, u, 1}, outside, normed))
	probs := logits
	if !form.afterTop {
		probs = over(logits)
	}
	sorted := made([3]int64{model.Experts, u, 1}, probs)
	chosen := viewed([3]int64{used, u, 1}, sorted)
	weights := made([3]int64{1, used, u}, viewed([3]int64{1, model.Experts, u}, probs), chosen)
	if form.afterTop {
		weights = viewed([3]int64{1, used, u}, over(viewed([3]int64{used, u, 1}, weights)))
	}
	if !form.unscaled {
		flat := viewed([3]int64{used, u, 1}, weights)
		sum := over(made([3]int64{1, u, 1}, flat))
		weights = viewed([3]int64{1, used, u}, over(flat, sum))
	}
	pass.expand(weights)
	wide := [3]int64{block.ExpertWidth, used, u}
	each := viewed([3]int64{model.Width, 1, u}, normed)
	product := func(shape [3]int64, of *value) *value {
		result := made(shape, outside, of, chosen)
		if form.biases {
			result = over(result, outside, chosen)
		}
		return result
	}
	active := made(wide, product(wide, each), product(wide, each))
	experts := over(product([3]int64{model.Width, used, u}, active), weights)
	return pass.joined(experts, [3]int64{model.Width, u, 1})
}

// joined adds up what the chosen experts made of each token.
func (pass *pass) joined(experts *value, shape [3]int64) *value {
	pass.expand(experts)
	parts := make([]*value, experts.shape[1])
	for i := range parts {
		parts[i] = viewed(shape, experts)
		pass.expand(parts[i])
	}
	total := parts[0]
	for _, part := range parts[1:] {
		total = over(total, part)
		pass.expand(total)
	}
	if len(parts) == 1 {
		return made(shape, total)
	}
	const most = 15 // experts of CUDA's kernel that reads its operands until then (ggml_cuda_match_moe_weighted_reduction)
	if pass.set.Alignment == 0 && len(parts) <= most {
		pass.expand(&value{of: outside, from: experts.from})
	}
	return total
}
