package ops

import "github.com/devmap-dev/devmap/modelgraph"

// freeze keeps the tensors that the kernel and the rotation need. The frozen norms of q and k keep
// no normalized tensor. A copy made for the output's projection is not kept.
func (op attention) freeze(cost *Cost, shape *Shape) {
	element, tokens := shape.elementBytes(), shape.Tokens
	dims := op.geometry(shape)
	inputs, output := shape.adapters()
	work := cost.Memory.Forward // in addition to existing tensors, with the trained op's tensors
	if op.QKNorm == modelgraph.GemmaRMSNorm || op.QKNorm != "" && op.QKNormFP32 {
		cost.Memory.Saved -= 4 * tokens * (dims.q + dims.k)
	} else if op.QKNorm != "" && !oneNorm(&op) {
		cost.Memory.Saved -= element * tokens * (dims.q + dims.k)
	}
	if op.LayerScale {
		cost.Memory.Saved -= shape.elementBytes() * op.Dim * tokens
	}
	kernel := op.kernelSaved(&dims, shape)
	// The projection reads a copy of the kernel's output, and only it keeps the copy.
	copied := unpads(&op, &dims, shape) || dims.by == scoresInMemory || dims.by == flashKernel && copiesOut(&op)
	if copied {
		cost.Memory.Saved -= element * tokens * dims.out
		kernel -= element * tokens * dims.out
	}
	if !shape.InputGrad && len(inputs) == 0 {
		cost.Memory.Saved, kernel = 0, 0
	}
	cost.Memory.Saved += attentionAdapters(op, shape, !copied)
	cost.Memory.Forward = max(work, 2*shape.streamBytes()*op.Dim*tokens+element*op.Dim*tokens+max(cost.Memory.Saved, op.quantInfer(shape))) + adapterWork(op, shape)

	record := tape{shape: shape, element: element, now: shape.streamBytes() * op.Dim * tokens, see: func(point backwardPoint) { cost.peak(point) }}
	backToOutput(op, &record, output, dims.out, copied)
	if kernel == 0 {
		return
	}
	if grads := element*tokens*dims.q + element*dims.kvTokens*(dims.k+dims.v); dims.by == scoresInMemory {
		gone := record.softmax(op, &dims)
		record.drop(kernel - element*tokens*dims.out - gone*dims.scores)
		record.add(grads)
	} else {
		record.add(cost.back - element*tokens*dims.out)
		record.drop(cost.back - grads) // the gradients of q, k and v remain
		record.drop(kernel)
	}
	backToInputs(op, &record, inputs, element*tokens*(dims.q+dims.k+dims.v))
}

// backToOutput runs backward of the output's projection, of width elements per token. copied: only
// the projection keeps its input.
func backToOutput(op attention, record *tape, output *Adapter, width int64, copied bool) {
	shape := record.shape
	switch {
	case !fusesOutput(op, shape):
		record.backward(linearLayer{in: width, out: op.Dim, adapter: output, residual: true, shared: !copied}, record.element)
	case copied:
		record.fusedOutput(output, record.element*width*shape.Tokens)
	default:
		record.fusedOutput(output, 0)
	}
}

// backToInputs runs backward of the projections of q, k and v, whose outputs' gradients are grads
// bytes.
func backToInputs(op attention, record *tape, inputs []*Adapter, grads int64) {
	shape := record.shape
	if fusesInputs(op, shape) {
		record.fusedInputs(inputs, grads)
		return
	}
	for i, adapter := range inputs {
		record.backward(linearLayer{in: adapter.In, out: adapter.Out, adapter: adapter, shared: i > 0}, shape.streamBytes())
		if i > 0 {
			record.drop(shape.streamBytes() * adapter.In * shape.Tokens) // added in place
		}
	}
}

// softmax runs backward of the product with v and of softmax. It returns the bytes per element of
// the cast, and of a dropout's tensors, that are freed.
func (record *tape) softmax(op attention, dims *geo) int64 {
	result, cast := op.scoreTypes(record.shape)
	out := record.element * record.shape.Tokens * dims.out
	gone := cast
	first := result // the gradient of the factor of v
	if cast > 0 {
		first = cast
	}
	record.add(first*dims.scores + out)
	record.drop(2*out + cast*dims.scores)              // the output's gradient; v, replaced by its gradient; the cast
	if op.InnerDropout && !inMath(&op, record.shape) { // its result and mask
		record.drop((record.element + 1) * dims.scores)
		gone += record.element + 1
	}
	if hasBias(&op, record.shape) && op.Dropout {
		record.drop(5 * dims.scores)
		gone += 5
	}
	if cast > 0 {
		record.turn(cast*dims.scores, result*dims.scores)
	}
	record.add(2 * result * dims.scores) // softmax's (SoftMax.cu: gradient × result, and the scores')
	record.drop(3*result*dims.scores + out)
	return gone
}

func (op attention) inputsPersist(shape *Shape) int64 {
	return shape.Tokens * (shape.streamBytes()*op.Dim + shape.elementBytes()*op.Heads*max(op.HeadDim, op.ValueDim))
}

func (op attention) quantInfer(shape *Shape) int64 {
	if shape.Quantize == "" {
		return 0
	}
	q := op.Heads * op.HeadDim
	return shape.elementBytes()*shape.Tokens*(q+2*op.KVHeads*op.HeadDim) + shape.quantForward(op.Dim, q, shape.elementBytes())
}

func (op attention) slack(shape *Shape) int64 {
	q, k := shape.elementBytes()*op.Heads*op.HeadDim*shape.Tokens, shape.elementBytes()*op.KVHeads*op.HeadDim*shape.Tokens
	switch {
	case op.Fused && op.Rope: // the projection, rotated q and k, the output and its copy
		return remainder(q+2*k) + 3*remainder(q) + remainder(k)
	case op.Fused:
		return remainder(q+2*k) + remainder(q)
	}
	return 2*remainder(q) + 2*remainder(k)
}

// fusesInputs reports that one function runs q, k and v (monkeypatch/lora_kernels.py,
// apply_lora_kernel_patches: each of the three has an adapter).
func fusesInputs(op attention, shape *Shape) bool {
	inputs, _ := shape.adapters()
	return shape.FusedAdapters && !op.Fused && !op.Cross && len(inputs) == 3
}

// fusesOutput reports that a function runs the output's projection.
func fusesOutput(op attention, shape *Shape) bool {
	_, output := shape.adapters()
	return shape.FusedAdapters && !op.Fused && !op.Cross && output != nil
}

// attentionAdapters returns the bytes that attention's adapters keep. outputShared: the kernel
// keeps the input of the output's projection.
func attentionAdapters(op attention, shape *Shape, outputShared bool) int64 {
	inputs, output := shape.adapters()
	var total int64
	if fusesInputs(op, shape) {
		total += shape.elementBytes()*op.in()*shape.Tokens + fusedCopies(shape, inputs...)
		inputs = nil
	}
	if fusesOutput(op, shape) {
		total += fusedCopies(shape, output)
		if !outputShared {
			total += shape.elementBytes() * output.In * shape.Tokens
		}
		output = nil
	}
	return total + shape.unfusedSaved(inputs, output, outputShared)
}

// adapterWork returns the most bytes that attention's adapters add to a forward.
func adapterWork(op attention, shape *Shape) int64 {
	var total int64
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		fused := fusesInputs(op, shape)
		if adapter.Output {
			fused = fusesOutput(op, shape)
		}
		if fused {
			total = max(total, fusedCopies(shape, adapter)+shape.elementBytes()*adapter.Rank*shape.Tokens)
		} else {
			total = max(total, adapter.unfusedWork(shape))
		}
	}
	return total
}
