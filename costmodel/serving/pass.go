package serving

import (
	"slices"
)

// form is what of a block decides its values, as the names of its tensors show.
type form struct {
	joined        bool // q, k and v are one product
	normed        bool // q and k are normed
	biased        bool // q, k and v have a bias
	outBiased     bool
	layerNorm     bool // norms are LayerNorm, not RMS
	normBiased    bool
	after         bool // a norm follows attention
	afterFeed     bool // a norm follows the feed-forward
	parallel      bool // attention and the feed-forward read one norm
	gated         bool // the feed-forward has a gate
	gateJoined    bool // gate and up are one product
	feedBiased    bool
	experts       bool
	biases        bool  // of experts' products
	shared        int64 // width of the shared expert; 0: none
	sharedGate    bool  // it has a gate of its own
	feedNorm      bool  // a norm comes before the feed-forward
	late          bool  // the last block computes all tokens, not only those with logits
	afterTop      bool  // softmax runs over the chosen experts alone
	residualFirst bool  // the residual is the first operand of the last sum
	unscaled      bool  // weights of experts are not divided by their sum
	unturned      bool  // positions do not rotate q and k
}

// pass builds the values of a device's part of one pass.
type pass struct {
	*graph

	set    *LlamaCPP
	model  *Model
	tokens int64
	masks  map[bool]*mask
	places *value // positions
	turns  map[rotation]*value
	rows   *value // of the tokens with logits
}

// mask are the inputs of attention for blocks that slide or see everything.
type mask struct{ cells, keys, values *value }

// input is a copy of a value from elsewhere. Pipelined devices have several, which last.
func (pass *pass) input(size int64) *value {
	return &value{size: size, shape: [3]int64{size, 1, 1}, kept: pass.set.Pipelined, copied: true}
}

// inputs are all copies in the order in which the values first read them
// (ggml_backend_sched_split_graph).
func (pass *pass) inputs() (all []*value) {
	for _, node := range pass.nodes {
		for _, operand := range node.from {
			if operand.copied && !slices.Contains(all, operand) {
				all = append(all, operand)
				for range pass.set.copies() - 1 {
					all = append(all, &value{size: operand.size, kept: true})
				}
			}
		}
	}
	return all
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
	result.over = result.over && !form.layerNorm // ggml's NORM, unlike RMS_NORM
	return biasedIf(form.normBiased, over(result, outside))
}

func biasedIf(is bool, of *value) *value {
	if is {
		return over(of, outside)
	}
	return of
}

// Compute is the buffer of a device for the values of one pass (llama-context.cpp, sched_reserve),
// with flash attention: the part of the model from block first to unit end. Blocks repeat, and so
// does the state of the allocator after some of them: it is enough to place a few.
func (set *LlamaCPP) Compute(model *Model, first, end int) int64 {
	blocks := min(end, len(model.Blocks)) - first
	for _, cycle := range []int{model.period, 2 * model.period} {
		const seen = 3 // cycles: two to compare, and one before them
		few := seen*cycle + (blocks-seen*cycle)%max(1, cycle)
		if cycle == 0 || few >= blocks {
			continue
		}
		if size, repeats := set.place(model, first, end, blocks-few, cycle); repeats {
			return size
		}
	}
	size, _ := set.place(model, first, end, 0, 0)
	return size
}

// state is that of the allocator after a block.
type state struct {
	free []freeBlock
	at   int64 // the hidden state's place
}

// place places the values of a run of blocks, without some in the middle. It reports whether the
// state after the second cycle of blocks is that after the first one: those that were left out then
// change nothing.
func (set *LlamaCPP) place(model *Model, first, end, without, cycle int) (size int64, repeats bool) {
	pass := &pass{graph: &graph{seen: map[*value]bool{}}, set: set, model: model, masks: map[bool]*mask{}, turns: map[rotation]*value{}}
	pass.tokens = padded(min(set.UBatch, set.Context*set.Sequences), set.Sequences) // graph_reserve
	hidden, normed := pass.begin(first)
	var ends []*value // of blocks
	for block := first; block < min(end, len(model.Blocks)); block++ {
		if block == first+2*cycle {
			block += without
		}
		hidden = pass.block(&model.Blocks[block], hidden, normed, block == len(model.Blocks)-1)
		ends, normed = append(ends, hidden), nil
	}
	pass.end(end, hidden, normed)
	inputs := pass.inputs()
	if !set.Pipelined {
		pass.nodes = append(inputs, pass.nodes...)
		inputs = nil
	}
	states := map[*value]state{}
	size = pass.graph.place(inputs, set.alignment(), func(node *value, arena *arena) {
		if cycle > 0 && (node == ends[cycle-1] || node == ends[2*cycle-1]) {
			states[node] = state{slices.Clone(arena.free), node.at}
		}
	})
	if cycle == 0 {
		return size, false
	}
	one, other := states[ends[cycle-1]], states[ends[2*cycle-1]]
	return size, one.at == other.at && slices.Equal(one.free, other.free)
}

// begin is the hidden state before a block, and its norm without weights if the device before has
// computed it: the scheduler gives what has no weight to that device, or after the host to this one.
func (pass *pass) begin(first int) (hidden, normed *value) {
	const fp32 = 4
	copied := func(rows int64) *value {
		result := pass.input(fp32 * rows * pass.model.Width)
		result.shape = [3]int64{pass.model.Width, rows, 1}
		return result
	}
	switch host := int(pass.set.HostBlocks); {
	case first == 0 && pass.model.scaled:
		return over(copied(pass.tokens)), nil
	case first == 0:
		return copied(pass.tokens), nil
	case first == host:
		return pass.afterHost(&pass.model.Blocks[first-1], [3]int64{pass.model.Width, pass.tokens, 1}), nil
	case first == len(pass.model.Blocks): // rows with logits alone
		normed = copied(pass.logits())
		return normed, normed
	}
	return copied(pass.tokens), copied(pass.tokens)
}

// end adds what follows the last block of a device: the norm of the next block without weights, or
// the output.
func (pass *pass) end(end int, hidden, normed *value) {
	blocks := pass.model.Blocks
	form := &blocks[len(blocks)-1].form
	late := form.late && end >= len(blocks) && normed == nil
	if late { // t_h_nextn of llama-graph.cpp
		hidden.kept = true
		hidden = pass.pick(hidden)
	}
	if end <= len(blocks) {
		pass.expand(over(hidden))
		return
	}
	last := pass.norm(hidden, normed, form)
	last.kept = true
	logits := made([3]int64{pass.model.Vocabulary, hidden.shape[1], 1}, outside, last)
	logits.kept = true
	pass.expand(logits)
}

// afterHost is the hidden state after a block of the host: its last sums have no weights, so that
// the device computes them.
func (pass *pass) afterHost(block *Block, shape [3]int64) *value {
	copied := func(shape [3]int64) *value {
		const fp32 = 4
		result := pass.input(fp32 * shape[0] * shape[1] * shape[2])
		result.shape = shape
		return result
	}
	form, used := &block.form, pass.model.ExpertsUsed
	fed := copied(shape)
	switch {
	case form.sharedGate:
		logit := copied([3]int64{1, shape[1], 1})
		gated := over(copied(shape), over(over(logit), logit))
		fed = over(fed, gated)
	case form.shared > 0:
		fed = over(copied(shape), fed)
	case form.experts:
		fed = pass.joined(over(copied([3]int64{shape[0], used, shape[1]}), copied([3]int64{1, used, shape[1]})), shape)
	}
	return pass.sum(form, fed, copied(shape))
}

// sum adds the feed-forward to the residual.
func (pass *pass) sum(form *form, fed, residual *value) *value {
	if form.residualFirst {
		return over(residual, fed)
	}
	return over(fed, residual)
}

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
	flat := viewed([3]int64{values[0] * block.Heads, u, 1}, kernel)
	pass.expand(flat)
	flat = pass.turn(flat, ofValues)
	return biasedIf(form.outBiased, made([3]int64{pass.model.Width, u, 1}, outside, flat))
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
		total = made(shape, total)
	}
	return total
}
