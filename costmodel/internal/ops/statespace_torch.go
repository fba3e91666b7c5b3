package ops

// delta is the gated delta rule in Python, which runs without the package of its kernels
// (modeling_qwen3_next.py, torch_chunk_gated_delta_rule). All tensors are fp32 and padded to whole
// chunks, with keys for each head of values.
func (op stateSpace) delta(shape *Shape) Cost {
	element, tokens, length := shape.elementBytes(), shape.Tokens, max(1, shape.Length)
	chunks := (length + op.Chunk - 1) / op.Chunk
	padded := tokens / length * chunks * op.Chunk
	keys, values := 4*padded*op.Heads*op.State, 4*padded*op.Inner
	scores := 4 * padded * op.Chunk * op.Heads
	states := 4 * tokens / length * chunks * op.Inner * op.State
	turned := element * tokens * (op.Inner + 2*op.Groups*op.State) // the convolution's input and output
	gate, stream := element*tokens*op.Inner, shape.streamBytes()*op.Dim*tokens
	cost := op.chunked(shape)
	// In fp32: queries and keys before and after their norms, keys times beta and solved keys, both
	// with their decays; values, solved values and each chunk's values. The decay of pairs, two
	// products with it, the system and the attention inside a chunk. The norm's input and its gate
	// in fp32, the gate's activation, the normalized tensor twice, and the product.
	norm := 12*tokens*op.Inner + 3*gate
	if shape.Frozen { // two factors are kept for the gradient of the norm's weight
		norm -= 2 * gate
	}
	cost.Memory.Saved = 8*keys + 3*values + 5*scores + states + norm + 2*turned + shape.casts(4, op.Dim, shape.Weights)
	// Products read keys in their order, which are copies in fp32, and 16-bit ones under autocast.
	if MixedPrecision(shape.Precision) {
		cost.Memory.Saved += 3 * keys
	} else if element == 4 {
		cost.Memory.Saved += 4 * keys
	}
	callers := 2*turned + gate + element*tokens*2*op.Heads*op.State
	cost.Memory.Forward = 2*stream + element*op.Dim*tokens + callers + max(5*keys+4*values+3*scores, 3*keys+2*values+4*scores) + cost.Memory.KV
	if shape.Train {
		cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+cost.Memory.Saved+values)
	}
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	// The sums of the chunks' gradients: of the result, of values, of three kinds of keys and of
	// the attention inside, with the gradient to add. The norm's tensors are freed.
	matrix := min(shape.NewGrads, shape.weightBytes()*op.Inner*op.Dim)
	cost.peak(
		backwardPoint{stream + gate + 2*values + 3*keys + scores + max(scores, keys, values) - norm, matrix, 0},
		backwardPoint{3*stream + 2*turned - cost.Memory.Saved, shape.NewGrads, shape.NewGrads},
	)
	return cost
}

// contracted adds mamba2_chunk_scan as it is since Transformers 5.18: sums over pairs are einsum's.
// Each of its bmm reads copies of B, C and the input in its order, which autograd keeps.
func (op stateSpace) contracted(shape *Shape) Cost {
	element, tokens, length := shape.elementBytes(), shape.Tokens, max(1, shape.Length)
	chunks := (length + op.Chunk - 1) / op.Chunk
	padded := tokens / length * chunks * op.Chunk
	keys := op.Groups * op.State
	wide := 4 * padded * op.Heads * op.State // B or C, one per head
	inner, scores, raw := 4*padded*op.Inner, 4*padded*op.Chunk*op.Heads, 4*tokens*op.Inner
	state := 4 * tokens / length * op.Inner * op.State
	inputs := element * tokens * (2*op.Inner + 2*keys + op.Heads)
	turned := element * tokens * (op.Inner + 2*keys) // the convolution's output
	stream := shape.streamBytes()*op.Dim*tokens + element*op.Dim*tokens
	cost := op.chunked(shape)
	// Saved are five tensors of B and C: two copies of each, and B with its decay. There are the
	// scores, their decay and their product. The input has two copies, with its factors and the sum
	// over states. The states follow, with the first state.
	// Under autocast bmm reads and gives 16 bits: the copies are half as large, and the product in
	// fp32 is a variable only.
	read, product, results := int64(1), int64(0), 5*inner
	if MixedPrecision(shape.Precision) { // C has a 16-bit form and its copy at once
		read, product, results = 2, scores, max(results, inner+wide/2)
	}
	scan := wide + inner + raw + scores + (4*wide+2*scores+3*inner+(2*chunks+1)*state)/read + inputs + turned + shape.casts(1, op.Dim, shape.Weights)
	norm := 5*raw + element*tokens*op.Inner // its input, the gate with its activation, both products, and the last projection's input
	if shape.Frozen {                       // weights of the sum's input, of the norm and of the projection have no gradients
		scan, norm = scan-inner, 4*raw
	}
	cost.Memory.Saved = scan + norm
	// Variables of the function: the scores, B, C and their decay, forms of the input, states.
	live := stream + inputs + turned + 3*wide + 3*scores + 2*inner + (chunks+1)*state + cost.Memory.KV
	cost.Memory.Forward = live + max(wide+2*inner+chunks*state, 5*inner, 2*(chunks+1)*state)
	if shape.Train {
		// Those that autograd does not keep: C, the decay of B, three results and their sum with its copy.
		cost.Memory.Forward = stream + max(scan+product+2*wide+results+state+(inner+(chunks+1)*state)/read+turned, cost.Memory.Saved+raw)
	}
	matrix := min(shape.NewGrads, shape.weightBytes()*op.Inner*op.Dim)
	cost.Memory.Backward, cost.Memory.BackwardGrads, cost.Memory.AccumPeak = 0, 0, 0
	cost.peak(
		// The gated norm's weight, whose gradient is a sum over tokens.
		backwardPoint{stream/2 + 3*raw + ReduceBuffer(tokens, op.Inner) - element*tokens*op.Inner, matrix, 0},
		// The scores' moment: gradients of them, their decay and product, of B, C and the input.
		backwardPoint{stream/2 + 2*wide + 2*scores + 3*inner - element*tokens*op.Inner - 5*raw - 2*wide - 3*inner - (2*chunks+1)*state, matrix, 0},
	)
	if read == 2 { // the product of B and its decay: gradients of C, of it in fp32 and of both factors, whose copies were 16-bit
		cost.peak(backwardPoint{stream/2 + 4*wide + 5*inner/2 - 5*raw - (2*wide+2*inner+(2*chunks+1)*state)/2, matrix, 0})
	}
	return cost
}
