package serving

import (
	"slices"
)

// form is what of a block decides its values, as the names of its tensors show.
type form struct {
	joined     bool // q, k and v are one product
	normed     bool // q and k are normed
	biased     bool // q, k and v have a bias
	outBiased  bool
	layerNorm  bool // norms have a bias (LayerNorm), not RMS
	after      bool // a norm follows attention
	afterFeed  bool // a norm follows the feed-forward
	parallel   bool // attention and the feed-forward read one norm
	gated      bool // the feed-forward has a gate
	gateJoined bool // gate and up are one product
	feedBiased bool
	experts    bool
	shared     int64 // width of a shared expert
}

// pass builds the values of a device's part of one pass.
type pass struct {
	*graph

	set    *LlamaCPP
	model  *Model
	tokens int64
	inputs []*value // copies of what other devices or the host made
	masks  map[bool]*mask
	places *value // positions
	rows   *value // of the tokens with logits
}

// mask are the inputs of attention for blocks that slide or see everything.
type mask struct{ cells, keys, values *value }

// input is a copy of a value from elsewhere. Pipelined devices have several, which last.
func (pass *pass) input(size int64) *value {
	copied := &value{size: size, shape: [3]int64{size, 1, 1}, kept: pass.set.Pipelined}
	pass.inputs = append(pass.inputs, copied)
	for range pass.set.copies() - 1 {
		pass.inputs = append(pass.inputs, &value{size: size, kept: true})
	}
	return copied
}

// maskOf are the inputs of a block's attention: the places of keys and values (64 bits), and a mask
// (16 bits).
func (pass *pass) maskOf(slides bool) *mask {
	if found := pass.masks[slides]; found != nil {
		return found
	}
	cells := pass.set.cells()
	if slides {
		cells = pass.set.slidingCells(pass.model)
	}
	const index, half = 8, 2
	made := &mask{keys: pass.input(index * pass.tokens), values: pass.input(index * pass.tokens), cells: pass.input(half * pass.tokens * cells)}
	pass.masks[slides] = made
	return made
}

// norm norms a value. normed is its result before the weight if another device made it.
func (pass *pass) norm(of, normed *value, form *form) *value {
	result := over(of)
	if normed != nil {
		result = normed
	}
	if form.layerNorm {
		result.over = false // ggml's NORM, unlike RMS_NORM
		return over(over(result, outside), outside)
	}
	return over(result, outside)
}

func biasedIf(is bool, of *value) *value {
	if is {
		return over(of, outside)
	}
	return of
}

// Compute is the buffer of a device for the values of one pass (llama-context.cpp, sched_reserve),
// with flash attention: the part of the model from block first to unit end.
func (set *LlamaCPP) Compute(model *Model, first, end int) int64 {
	tokens := min(set.UBatch, set.Context*set.Sequences)
	pass := &pass{graph: &graph{seen: map[*value]bool{}}, set: set, model: model, tokens: tokens, masks: map[bool]*mask{}}
	hidden := pass.input(4 * tokens * model.Width)
	hidden.shape = [3]int64{model.Width, tokens, 1}
	var normed *value // by the device before, which computes what has no weight
	if first > 0 {
		normed = pass.input(4 * tokens * model.Width)
		normed.shape = hidden.shape
	}
	for block := first; block < min(end, len(model.Blocks)); block++ {
		hidden = pass.block(&model.Blocks[block], hidden, normed, block == len(model.Blocks)-1)
		normed = nil
	}
	if end < len(model.Blocks) {
		pass.expand(over(hidden))
	}
	if end > len(model.Blocks) {
		last := pass.norm(hidden, normed, &model.Blocks[len(model.Blocks)-1].form)
		last.kept = true
		logits := made([3]int64{model.Vocabulary, hidden.shape[1], 1}, outside, last)
		logits.kept = true
		pass.expand(logits)
	}
	pass.expand(hidden)
	inputs := pass.inputs
	if !set.Pipelined {
		pass.nodes = append(slices.Clone(inputs), pass.nodes...)
		inputs = nil
	}
	return pass.place(inputs)
}

// block adds a block with attention, and returns the hidden state after it.
func (pass *pass) block(block *Block, hidden, before *value, last bool) *value {
	form := &block.form
	normed := pass.norm(hidden, before, form)
	attended := pass.attention(block, normed)
	if last {
		if pass.rows == nil {
			pass.rows = pass.input(4 * pass.logits())
		}
		attended = made([3]int64{pass.model.Width, pass.logits(), 1}, attended, pass.rows)
		hidden = made([3]int64{pass.model.Width, pass.logits(), 1}, hidden, pass.rows)
		if form.parallel {
			normed = made(hidden.shape, normed, pass.rows)
		}
	}
	if form.after {
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
	return over(fed, middle)
}

func (pass *pass) logits() int64 { return min(pass.tokens, pass.set.Outputs) }

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
	if pass.places == nil {
		pass.places = pass.input(4 * u)
	}
	q, k = over(q, pass.places), over(k, pass.places)
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
	flat := viewed([3]int64{values[0] * block.Heads, u, 1}, kernel)
	pass.expand(flat)
	return biasedIf(form.outBiased, made([3]int64{pass.model.Width, u, 1}, outside, flat))
}

// feed adds the feed-forward (llama-graph.cpp, build_ffn).
func (pass *pass) feed(block *Block, normed *value) *value {
	form, u := &block.form, normed.shape[1]
	if form.experts {
		return pass.choose(block, normed)
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

// choose adds a mixture of experts (llama-graph.cpp, build_moe_ffn).
func (pass *pass) choose(block *Block, normed *value) *value {
	model, u := pass.model, normed.shape[1]
	used := model.ExpertsUsed
	logits := made([3]int64{model.Experts, u, 1}, outside, normed)
	probs := over(logits)
	sorted := made([3]int64{model.Experts, u, 1}, probs)
	chosen := viewed([3]int64{used, u, 1}, sorted)
	weights := made([3]int64{1, used, u}, viewed([3]int64{1, model.Experts, u}, probs), chosen)
	flat := viewed([3]int64{used, u, 1}, weights)
	sum := over(made([3]int64{1, u, 1}, flat))
	weights = viewed([3]int64{1, used, u}, over(flat, sum))
	pass.expand(weights)
	wide := [3]int64{block.ExpertWidth, used, u}
	each := viewed([3]int64{model.Width, 1, u}, normed)
	up := made(wide, outside, each, chosen)
	gate := made(wide, outside, each, chosen)
	active := made(wide, gate, up)
	experts := over(made([3]int64{model.Width, used, u}, outside, active, chosen), weights)
	pass.expand(experts)
	var parts []*value
	for range used {
		part := viewed([3]int64{model.Width, u, 1}, experts)
		pass.expand(part)
		parts = append(parts, part)
	}
	total := parts[0]
	for _, part := range parts[1:] {
		total = over(total, part)
		pass.expand(total)
	}
	if used == 1 {
		total = made(total.shape, total)
	}
	return total
}
