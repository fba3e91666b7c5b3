package forward

// usp is attention if each GPU has a part of the tokens, or a stage of PipeFusion the last step's
// keys (xfuser/model_executor/layers/usp.py: USP). Sizes are elements of one GPU.
type usp struct {
	image, text int64 // of the queries' rows; text: what every GPU has whole, joined to them
	batch, dim  int64
	heads       int64
	together    bool // queries, keys and values are sent as one
	copied      bool // a registered cache hands keys and values on as copies
	fill        bool // the result is copied from heads into rows
}

// usp walks it. Ulysses copies what it sends with heads first, and what it receives into the order
// of tokens; the caller still holds the originals.
func (k *kernels) usp(of usp) *value {
	ulysses, rows := k.gpus/k.ring, of.image+of.text
	var query, key, val *value
	if of.text > 0 {
		query = k.new(rows)
	}
	switch {
	case ulysses == 1:
	case of.together:
		stacked := k.new(3 * rows)
		sent := k.new(3 * rows)
		k.drop(stacked)
		come := k.new(3 * rows)
		k.drop(sent)
		query = k.new(3 * rows)
		k.drop(come)
	default:
		k.become(&query, k.allToAll(rows))
		key, val = k.allToAll(of.image), k.allToAll(of.image)
	}
	switch {
	case k.cacheKV && k.stage == nil:
		k.keep(2 * of.image)
		newKey, newVal := k.new(of.image), k.new(of.image)
		k.drop(key, val)
		key, val = newKey, newVal
	case of.copied:
		both := k.new(2 * of.image)
		newKey, newVal := k.new(of.image), k.new(of.image)
		k.drop(key, val, both)
		key, val = newKey, newVal
	}
	var joinedKey, joinedVal *value
	if of.text > 0 {
		joinedKey, joinedVal = k.new(of.image+of.text/ulysses), k.new(of.image+of.text/ulysses)
	}
	out := k.kernel(rows, rows/max(1, of.dim)*of.heads)
	k.drop(joinedKey, joinedVal)
	k.ringed(of.image, rows)
	if ulysses > 1 {
		k.become(&out, k.allToAll(rows))
	}
	k.drop(query, key, val)
	if of.fill {
		k.become(&out, k.new(rows))
	}
	k.flops += 4 * float64(rows) * float64(rows/max(1, of.batch*of.dim)) * float64(k.gpus)
	return out
}

// allToAll exchanges rows (usp.py, _ft_c_input_all_to_all, _ft_c_output_all_to_all). It makes a
// copy in the order of GPUs, the received rows, and a copy in the order of heads and tokens.
func (k *kernels) allToAll(elements int64) *value {
	sent := k.new(elements)
	come := k.new(elements)
	k.drop(sent)
	out := k.new(elements)
	k.drop(come)
	return out
}

// keep is a cache manager's new tensor, which replaces the last run's: resident tensors include it
// (cache_manager.py: _naive_cache_update).
func (k *kernels) keep(elements int64) { k.drop(k.new(elements)) }

// pipefused stores a stage's keys and values in the cache manager and joins the picture's with the
// text's. Their source rows live until both are joined (transformer_flux.py: xFuserFluxAttnProcessor).
func (k *kernels) pipefused(image, rows int64, key, val **value) {
	k.keep(2 * image)
	joinedKey, joinedVal := k.new(rows), k.new(rows)
	k.become(key, joinedKey)
	k.become(val, joinedVal)
}

// ringed is ring attention if results of parts of the keys are merged. Keys and values of the whole
// ring are gathered at once. Both results and two terms of the sum are in single precision. Source:
// torch/distributed/tensor/experimental/_context_parallel/_attention.py, _templated_ring_attention
// and _SDPAMerger._merge_one.
func (k *kernels) ringed(keys, rows int64) {
	if k.ring < 2 {
		return
	}
	k.drop(k.new(2*k.ring*keys), k.single(rows), k.single(rows), k.single(rows), k.single(rows))
}
