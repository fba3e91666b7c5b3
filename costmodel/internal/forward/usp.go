package forward

// usp is attention of which each GPU has a part of the tokens, or a stage of
// PipeFusion the keys of the step before (xfuser/model_executor/layers/usp.py:
// USP). Sizes are elements of one GPU.
type usp struct {
	image, text int64 // of the queries' rows; text: what every GPU has whole and is joined beside
	batch, dim  int64
	heads       int64
	together    bool // queries, keys and values are sent as one
	copied      bool // a registered cache hands keys and values on as copies
	fill        bool // the result is copied from heads into rows
}

// usp walks it. What Ulysses sends is copied so that heads come first, and what
// comes is copied into the order of tokens; the caller still names queries, keys
// and values as they were.
func (tape *tape) usp(of usp) *value {
	ulysses, rows := tape.gpus/tape.ring, of.image+of.text
	var query, key, val *value
	if of.text > 0 {
		query = tape.new(rows)
	}
	switch {
	case ulysses == 1:
	case of.together:
		stacked := tape.new(3 * rows)
		sent := tape.new(3 * rows)
		tape.drop(stacked)
		come := tape.new(3 * rows)
		tape.drop(sent)
		query = tape.new(3 * rows)
		tape.drop(come)
	default:
		tape.become(&query, tape.allToAll(rows))
		key, val = tape.allToAll(of.image), tape.allToAll(of.image)
	}
	switch {
	case tape.kept && tape.stage == nil:
		tape.keep(2 * of.image)
		newKey, newVal := tape.new(of.image), tape.new(of.image)
		tape.drop(key, val)
		key, val = newKey, newVal
	case of.copied:
		both := tape.new(2 * of.image)
		newKey, newVal := tape.new(of.image), tape.new(of.image)
		tape.drop(key, val, both)
		key, val = newKey, newVal
	}
	var joinedKey, joinedVal *value
	if of.text > 0 {
		joinedKey, joinedVal = tape.new(of.image+of.text/ulysses), tape.new(of.image+of.text/ulysses)
	}
	out := tape.kernel(rows, rows/max(1, of.dim)*of.heads)
	tape.drop(joinedKey, joinedVal)
	tape.ringed(of.image, rows)
	if ulysses > 1 {
		tape.become(&out, tape.allToAll(rows))
	}
	tape.drop(query, key, val)
	if of.fill {
		tape.become(&out, tape.new(rows))
	}
	tape.flops += 4 * float64(rows) * float64(rows/max(1, of.batch*of.dim)) * float64(tape.gpus)
	return out
}

// allToAll sends rows and takes others' in (usp.py: _ft_c_input_all_to_all,
// _ft_c_output_all_to_all): a copy in the order of GPUs, what arrives, and a copy
// in the order of heads and tokens.
func (tape *tape) allToAll(elements int64) *value {
	sent := tape.new(elements)
	come := tape.new(elements)
	tape.drop(sent)
	out := tape.new(elements)
	tape.drop(come)
	return out
}

// keep is a cache manager's new tensor, which takes the place of the one of the
// run before: what stays is counted with what stands on the GPU
// (cache_manager.py: _naive_cache_update).
func (tape *tape) keep(elements int64) { tape.drop(tape.new(elements)) }

// pipefused hands a stage's keys and values to the cache manager and joins what
// comes back, the picture's, with the text's: the rows that they were cut from
// live until both are (transformer_flux.py: xFuserFluxAttnProcessor).
func (tape *tape) pipefused(image, rows int64, key, val **value) {
	tape.keep(2 * image)
	joinedKey, joinedVal := tape.new(rows), tape.new(rows)
	tape.become(key, joinedKey)
	tape.become(val, joinedVal)
}

// ringed is ring attention where one part of the keys' result joins another's:
// keys and values of every GPU of the ring are gathered at once, both results
// are in single precision, and so are two terms of the sum
// (torch/distributed/tensor/experimental/_context_parallel/_attention.py:
// _templated_ring_attention, _SDPAMerger._merge_one).
func (tape *tape) ringed(keys, rows int64) {
	if tape.ring < 2 {
		return
	}
	tape.drop(tape.new(2*tape.ring*keys), tape.single(rows), tape.single(rows), tape.single(rows), tape.single(rows))
}
