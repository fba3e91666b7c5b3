package modelgraph

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// checkWeights reports a layer whose parameters contradict the dimensions of its operation, from
// which costs are computed. Matrices are compared by their elements, so that any framework's form
// passes. They may be transposed (GPT-2's Conv1D), have q, k and v in one, or have experts one by
// one or stacked. Two kinds of layers are not checked: those in quantised storage, which packs
// several weights into an element, and those with declared bytes.
func (layer *Layer) checkWeights() error {
	if layer.Declared != nil && layer.Declared.ParamsBytes >= 0 {
		return nil
	}
	if slices.ContainsFunc(layer.Params, func(tensor Tensor) bool { return !tensor.DType.Float() }) {
		return nil
	}
	if norm, ok := layer.Op.(Norm); ok {
		return layer.vectors(norm.Dim)
	}
	stored, ok := weightsOf(layer.Op)
	if !ok {
		return nil
	}
	if len(layer.Params) == 0 {
		return fmt.Errorf("%q: op %s of %s has weights, and the layer has no params: give their shapes, or declared params_bytes", layer.Name, layer.Op.kind(), stored.what)
	}
	flat := !slices.ContainsFunc(layer.Params, func(tensor Tensor) bool { return len(tensor.Shape) > 1 })
	total, optional, largest := layer.matrices(&stored, flat)
	switch {
	case total < stored.min || total-optional > stored.max:
		return fmt.Errorf("%q: op %s of %s has weights of %d elements, but with %q %v there are %d: op and params are of different sizes",
			layer.Name, layer.Op.kind(), stored.what, stored.min, FullName(layer.Name, largest.Name), largest.Shape, total)
	case flat || len(stored.bias) == 0:
		return nil
	}
	return layer.vectors(stored.bias...)
}

// matrices returns the elements of the parameters that are matrices, or of all if they are flat. It
// also returns the elements of the optional matrices, and the largest one.
func (layer *Layer) matrices(stored *weights, flat bool) (total, optional int64, largest *Tensor) {
	largest = &layer.Params[0]
	for i := range layer.Params {
		tensor := &layer.Params[i]
		if len(tensor.Shape) < 2 && !flat { // a bias; all in one vector is FSDP1's flat parameter
			continue
		}
		total = sum(total, tensor.Numel)
		if slices.ContainsFunc(stored.optional, func(side int64) bool { return slices.Contains(tensor.Shape, side) }) && tensor.Numel < stored.min/2 {
			optional += tensor.Numel
		}
		if tensor.Numel > largest.Numel || len(tensor.Shape) > len(largest.Shape) {
			largest = tensor
		}
	}
	if stored.table {
		total = largest.Numel // a class token may lie next to the table
	}
	return total, optional, largest
}

// vectors checks that parameters of one dimension have one of the lengths.
func (layer *Layer) vectors(lengths ...int64) error {
	for i := range layer.Params {
		tensor := &layer.Params[i]
		if _, norm := layer.Op.(Norm); (norm || len(tensor.Shape) == 1) && !slices.Contains(lengths, tensor.Numel) {
			return fmt.Errorf("%q: op %s is %d wide, but %q is %v: op and params are of different sizes",
				layer.Name, layer.Op.kind(), lengths[0], FullName(layer.Name, tensor.Name), tensor.Shape)
		}
	}
	return nil
}

// weights is how many elements an operation's matrices have together.
type weights struct {
	what     string
	min, max int64
	optional []int64 // matrices with one of these sides may be added: a bias a head, a norm of each
	table    bool    // one matrix counts, the largest
	bias     []int64 // lengths of vectors, if nothing else is one
}

// weightsOf returns what the dimensions of op require; ok is false for an operation without weights
// of its own.
func weightsOf(op Op) (weights, bool) {
	exact := func(count int64, format string, args ...any) weights {
		return weights{what: fmt.Sprintf(format, args...), min: count, max: count}
	}
	switch op := op.(type) {
	case Embedding:
		stored := exact(product(op.Vocab, op.Dim), "%d rows of %d", op.Vocab, op.Dim)
		stored.table = true
		return stored, true
	case Head:
		stored := exact(product(op.Vocab, op.Dim), "%d → %d", op.Dim, op.Vocab)
		stored.bias = []int64{op.Vocab}
		return stored, true
	case Linear:
		stored := exact(product(op.In, op.Out), "%d → %d", op.In, op.Out)
		stored.bias = []int64{op.Out}
		return stored, true
	case MLP:
		count := int64(2)
		if op.Gated {
			count = 3
		}
		return exact(product(count, op.Dim, op.Hidden), "%d → %d → %d in %d matrices", op.Dim, op.Hidden, op.Dim, count), true
	case MoE:
		return op.weights(), true
	case Attention:
		stored := exact(op.elements(), "width %d with %d heads of %d and %d KV heads", op.Dim, op.Heads, op.HeadDim, op.KVHeads)
		stored.optional = []int64{op.Heads, op.KVHeads}
		if op.ScoreBias != "" { // keys and queries of relative positions (DeBERTa), or all three of global tokens (Longformer) are added
			stored.max = sum(stored.max, product(3, op.Dim, op.Heads, op.HeadDim))
		}
		if op.Joint { // q, k and v; those of the second stream are added
			stored.min, stored.max = product(3, op.Dim, op.Heads, op.HeadDim), math.MaxInt64
		}
		if op.Cross { // keys and values may come from an encoder of another width
			stored.min, stored.max = product(2, op.Dim, op.Heads, op.HeadDim), math.MaxInt64
		}
		return stored, true
	case Conv: // in groups each output reads a part of the inputs
		stored := exact(product(op.In, op.Out, op.Kernel), "%d → %d with a kernel of %d", op.In, op.Out, op.Kernel)
		stored.min = product(op.Out, op.Kernel)
		return stored, true
	case StateSpace:
		if op.Heads > 0 {
			return op.weights(), true
		}
		// Both halves of the input, the output, x's projection, dt's, A and
		// the convolution of each channel (Gu and Dao 2023, §3).
		count := sum(product(3, op.Dim, op.Inner), product(op.Inner, sum(2*op.DtRank, 3*op.State, op.Kernel)))
		return exact(count, "width %d, inner %d, state %d", op.Dim, op.Inner, op.State), true
	}
	return weights{}, false
}

// elements returns the elements of the projections: q, k, v and the output. With latent ranks
// (DeepSeek-V2, arXiv 2405.04434, §2.1) these are the projections to the latents and back.
func (attention Attention) elements() int64 {
	value := attention.ValueDim
	if value == 0 {
		value = attention.HeadDim
	}
	q := product(attention.in(), attention.Heads, attention.HeadDim)
	if attention.QRank > 0 {
		q = product(attention.QRank, sum(attention.Dim, product(attention.Heads, attention.HeadDim)))
	}
	kv := product(attention.in(), attention.KVHeads, attention.HeadDim+value)
	if attention.SharedKV {
		kv = 0
	}
	if attention.KVRank > 0 {
		kv = sum(product(attention.Dim, attention.KVRank+attention.RopeDim), product(attention.KVRank, attention.Heads, max(0, attention.HeadDim-attention.RopeDim)+value))
	}
	return sum(q, kv, product(attention.Dim, attention.Heads, value), product(attention.in(), attention.gate()), attention.indexer())
}

// weights returns the elements of a mixer in chunks. Input, gate and output are as wide as Inner.
// Keys and queries, steps, decays and the convolution are added; a kind may lack some of them.
func (mixer StateSpace) weights() weights {
	keys := product(2, mixer.Groups, mixer.State)
	return weights{
		what: fmt.Sprintf("width %d, inner %d, %d groups of state %d", mixer.Dim, mixer.Inner, mixer.Groups, mixer.State),
		min:  product(3, mixer.Dim, mixer.Inner),
		max:  sum(product(3, mixer.Dim, mixer.Inner), product(mixer.Dim, sum(keys, 2*mixer.Heads)), product(mixer.Kernel, sum(mixer.Inner, keys))),
	}
}

// weights returns the elements of a mixture: experts with two or three matrices each, those that
// every token passes, and a router. Biases of experts are matrices too, with a row for each expert.
func (experts MoE) weights() weights {
	expert := product(experts.Experts, experts.Dim, experts.Hidden)
	return weights{
		what: fmt.Sprintf("%d experts of %d → %d → %d", experts.Experts, experts.Dim, experts.Hidden, experts.Dim),
		min:  product(2, expert),
		max: sum(product(3, expert), product(3, experts.Dim, experts.SharedHidden), product(experts.Experts, experts.Dim),
			product(experts.Experts, sum(2*experts.Hidden, experts.Dim)), experts.Dim),
	}
}

// product multiplies. It returns the largest number if the result is larger.
func product(factors ...int64) int64 {
	count := uint64(1)
	for _, factor := range factors {
		hi, lo := bits.Mul64(count, uint64(max(0, factor)))
		if hi != 0 || lo > math.MaxInt64 {
			lo = math.MaxInt64
			if slices.Contains(factors, 0) {
				lo = 0
			}
			return int64(lo)
		}
		count = lo
	}
	return int64(count)
}

// sum adds. It returns the largest number if the result is larger.
func sum(terms ...int64) int64 {
	total := int64(0)
	for _, term := range terms {
		if total += term; total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

// indexer returns the elements of the matrices of its queries, its key, and the heads' weights.
func (attention Attention) indexer() int64 {
	if attention.IndexHeads == 0 {
		return 0
	}
	from := cmp.Or(attention.QRank, attention.Dim)
	return sum(product(from, attention.IndexHeads, attention.IndexDim), product(attention.Dim, attention.IndexDim), product(attention.Dim, attention.IndexHeads))
}
