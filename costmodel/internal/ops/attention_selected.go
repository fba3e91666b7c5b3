package ops

func (op attention) selected(selective *Selective, shape *Shape, biases int) int64 {
	dims := op.geometry(shape)
	if shape.Modules == Torchtitan {
		return selectedByTitan(&op, selective, &dims, shape)
	}
	in := []struct{ rows, width int64 }{{shape.Tokens, dims.q}, {dims.kvTokens, dims.k}, {dims.kvTokens, dims.v}}
	switch {
	case op.KVRank > 0:
		in = in[:0]
		if op.QRank > 0 {
			in = append(in, struct{ rows, width int64 }{shape.Tokens, op.QRank})
		}
		full := op.Heads * (op.HeadDim - op.RopeDim + op.ValueDim)
		in = append(in, []struct{ rows, width int64 }{{shape.Tokens, dims.q}, {shape.Tokens, op.KVRank + op.RopeDim}, {shape.Tokens, full}}...)
	case op.SharedKV:
		in = in[:1]
	case op.Fused:
		in = in[:1]
		in[0].width = dims.q + dims.k + dims.v
	}
	var total int64
	if biases < len(in) { // Qwen2: only the output's projection has none
		for _, p := range in {
			total += selective.product(shape, p.rows, p.width)
		}
	}
	if biases <= len(in) {
		total += selective.product(shape, shape.Tokens, op.Dim)
	}
	switch op.kernelOf(&dims, shape) {
	case flashKernel, efficientKernel: // output, log-sum-exp, and the seeds of dropout
		total += shape.elementBytes()*shape.Tokens*dims.out + 4*op.Heads*shape.Tokens + philox
	case scoresInMemory: // aten.bmm and softmax are not listed
	}
	return total
}

func (op attention) bound(shape *Shape) bound {
	var b bound
	width := float64(op.HeadDim) + float64(op.ValueDim)
	b.width = float64(op.Dim) + float64(op.InDim) + float64(op.IndexHeads)*float64(op.IndexDim) + 4*(float64(op.Heads)+float64(op.KVHeads))*(1+width) + float64(op.QRank) + float64(op.KVRank) + float64(op.RopeDim)
	b.matrix = (float64(op.Dim) + float64(op.InDim)) * (float64(op.Heads) + float64(op.KVHeads)) * width
	length := max(float64(shape.Length), float64(shape.Encoder)/float64(max(1, shape.Batch)))
	b.scores = (float64(op.Heads) + float64(op.IndexHeads)) * float64(shape.Tokens) * length
	return b
}

// othersKeys returns the bytes of keys and values gathered from other GPUs for the kernel
// (torchtitan 0.3, distributed/context_parallel/api.py, cp_forward).
func othersKeys(shape *Shape, dims *geo) int64 {
	return shape.elementBytes() * max(0, shape.Context-1) * shape.Tokens * (dims.k + dims.v)
}

// scatteredOutput returns the bytes of the sum over the GPUs that share matrices. Each keeps its
// tokens (reduce_scatter_tensor, one of the operations whose results SelectiveAC keeps).
func scatteredOutput(shape *Shape, width int64) int64 {
	if shape.Tensor < 2 {
		return 0
	}
	return shape.elementBytes() * shape.Tokens * width / shape.Tensor
}

// selectedByTitan returns the bytes that torchtitan 0.3's SelectiveAC keeps of attention
// (distributed/activation_checkpoint.py): the first of two products, the fused projection, and the
// results of FlexAttention's compiled forward. These are the output, log-sum-exp, and the queries,
// keys and values that its backward reads.
func selectedByTitan(op *attention, selective *Selective, dims *geo, shape *Shape) int64 {
	total := selective.product(shape, shape.Tokens, dims.q+dims.k+dims.v)
	total += selective.product(shape, shape.Tokens, op.Dim)
	total += othersKeys(shape, dims) + scatteredOutput(shape, op.Dim)
	return total + shape.elementBytes()*shape.Tokens*(dims.q+dims.k+dims.v+dims.out) + 4*op.Heads*shape.Tokens
}
