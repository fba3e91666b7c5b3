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
	cost.Memory.Saved = 8*keys + 3*values + 5*scores + states + norm + 2*turned + shape.casts(1, op.Dim, shape.Weights)
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
