package serving

import (
	"slices"
)

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
	return &value{size: size, shape: [3]int64{size, 1, 1}, lasting: pass.set.Pipelined, copied: true}
}

// inputs are all copies in the order in which the values first read them
// (ggml_backend_sched_split_graph).
func (pass *pass) inputs() (all []*value) {
	for _, node := range pass.nodes {
		for _, operand := range node.from {
			if operand.copied && !slices.Contains(all, operand) {
				all = append(all, operand)
				for range pass.set.copies() - 1 {
					all = append(all, &value{size: operand.size, lasting: true})
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

// compute is the buffer of a device for the values of one pass (llama-context.cpp, sched_reserve),
// with flash attention: the part of the model from block first to unit end. Blocks repeat, and so
// does the state of the allocator after some of them: it is enough to place a few.
func (set *LlamaCPP) compute(model *Model, first, end int) int64 {
	blocks := min(end, len(model.Blocks)) - first
	for _, cycle := range []int{model.period, 2 * model.period} {
		const seen = 3 // cycles: two to compare, and one after them
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
	size = pass.run(inputs, set.alignment(), func(node *value, arena *arena) {
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
		hidden.lasting = true
		hidden = pass.pick(hidden)
	}
	if end <= len(blocks) {
		pass.expand(over(hidden))
		return
	}
	last := pass.norm(hidden, normed, form)
	last.lasting = true
	logits := made([3]int64{pass.model.Vocabulary, hidden.shape[1], 1}, outside, last)
	logits.lasting = true
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
