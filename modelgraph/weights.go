package modelgraph

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// checkWeights reports a layer whose parameters contradict the dimensions of
// its operation, from which costs are worked out. Matrices are compared by
// their elements, so that any framework's cut passes: transposed (GPT-2's
// Conv1D), q, k and v in one, experts one by one or stacked. Nothing can be
// said of quantised storage, which packs several weights into an element, nor
// where the model file declares the bytes.
func (l *Layer) checkWeights() error {
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return nil
	}
	if slices.ContainsFunc(l.Params, func(t Tensor) bool { return !t.DType.Float() }) {
		return nil
	}
	if n, ok := l.Op.(Norm); ok {
		return l.vectors(n.Dim)
	}
	w, ok := weightsOf(l.Op)
	if !ok {
		return nil
	}
	if len(l.Params) == 0 {
		return fmt.Errorf("%q: op %s of %s has weights, and the layer has no params: give their shapes, or declared params_bytes", l.Name, l.Op.kind(), w.what)
	}
	flat := !slices.ContainsFunc(l.Params, func(t Tensor) bool { return len(t.Shape) > 1 })
	total, beside, largest := l.matrices(&w, flat)
	switch {
	case total < w.least || total-beside > w.most:
		return fmt.Errorf("%q: op %s of %s has weights of %d elements, but with %q %v there are %d: op and params are of different sizes",
			l.Name, l.Op.kind(), w.what, w.least, FullName(l.Name, largest.Name), largest.Shape, total)
	case flat || len(w.bias) == 0:
		return nil
	}
	return l.vectors(w.bias...)
}

// matrices counts the elements of the parameters that are matrices, or of all
// where they are flat; those of the matrices that may come on top; and names
// the largest.
func (l *Layer) matrices(w *weights, flat bool) (total, beside int64, largest *Tensor) {
	largest = &l.Params[0]
	for i := range l.Params {
		t := &l.Params[i]
		if len(t.Shape) < 2 && !flat { // a bias; all in one vector is FSDP1's flat parameter
			continue
		}
		total = sum(total, t.numel)
		if w.beside > 0 && slices.Contains(t.Shape, w.beside) && t.numel < w.least/2 {
			beside += t.numel
		}
		if t.numel > largest.numel || len(t.Shape) > len(largest.Shape) {
			largest = t
		}
	}
	if w.table {
		total = largest.numel // a class token may lie beside the table
	}
	return total, beside, largest
}

// vectors checks that parameters of one dimension have one of the lengths.
func (l *Layer) vectors(lengths ...int64) error {
	for i := range l.Params {
		t := &l.Params[i]
		if _, norm := l.Op.(Norm); (norm || len(t.Shape) == 1) && !slices.Contains(lengths, t.numel) {
			return fmt.Errorf("%q: op %s is %d wide, but %q is %v: op and params are of different sizes",
				l.Name, l.Op.kind(), lengths[0], FullName(l.Name, t.Name), t.Shape)
		}
	}
	return nil
}

// weights are the elements that an operation's matrices have together.
type weights struct {
	what        string
	least, most int64
	beside      int64   // matrices with this side may come on top: a bias a head
	table       bool    // one matrix counts, the largest
	bias        []int64 // lengths of vectors, where nothing else is one
}

// weightsOf is what the dimensions of op ask for; ok is false for an operation
// without weights of its own.
func weightsOf(op Op) (weights, bool) {
	exact := func(n int64, format string, args ...any) weights {
		return weights{what: fmt.Sprintf(format, args...), least: n, most: n}
	}
	switch op := op.(type) {
	case Embedding:
		w := exact(product(op.Vocab, op.Dim), "%d rows of %d", op.Vocab, op.Dim)
		w.table = true
		return w, true
	case Head:
		w := exact(product(op.Vocab, op.Dim), "%d → %d", op.Dim, op.Vocab)
		w.bias = []int64{op.Vocab}
		return w, true
	case Linear:
		w := exact(product(op.In, op.Out), "%d → %d", op.In, op.Out)
		w.bias = []int64{op.Out}
		return w, true
	case MLP:
		n := int64(2)
		if op.Gated {
			n = 3
		}
		return exact(product(n, op.Dim, op.Hidden), "%d → %d → %d in %d matrices", op.Dim, op.Hidden, op.Dim, n), true
	case MoE:
		return op.weights(), true
	case Attention:
		w := exact(op.elements(), "width %d with %d heads of %d and %d KV heads", op.Dim, op.Heads, op.HeadDim, op.KVHeads)
		w.beside = op.Heads
		if op.Cross { // keys and values may come from an encoder of another width
			w.least, w.most = product(2, op.Dim, op.Heads, op.HeadDim), math.MaxInt64
		}
		return w, true
	case Conv: // in groups each output reads a part of the inputs
		w := exact(product(op.In, op.Out, op.Kernel), "%d → %d with a kernel of %d", op.In, op.Out, op.Kernel)
		w.least = product(op.Out, op.Kernel)
		return w, true
	case StateSpace:
		// Both halves of the input, the output, x's projection, dt's, A and
		// the convolution of each channel (Gu and Dao 2023, §3).
		n := sum(product(3, op.Dim, op.Inner), product(op.Inner, sum(2*op.DtRank, 3*op.State, op.Kernel)))
		return exact(n, "width %d, inner %d, state %d", op.Dim, op.Inner, op.State), true
	}
	return weights{}, false
}

// elements are those of the projections: q, k, v and the output; with latent
// ranks (DeepSeek-V2, arXiv 2405.04434, §2.1) the ways down and up again.
func (a Attention) elements() int64 {
	value := a.ValueDim
	if value == 0 {
		value = a.HeadDim
	}
	q := product(a.Dim, a.Heads, a.HeadDim)
	if a.QRank > 0 {
		q = product(a.QRank, sum(a.Dim, product(a.Heads, a.HeadDim)))
	}
	kv := product(a.Dim, a.KVHeads, a.HeadDim+value)
	if a.KVRank > 0 {
		kv = sum(product(a.Dim, a.KVRank+a.RopeDim), product(a.KVRank, a.Heads, max(0, a.HeadDim-a.RopeDim)+value))
	}
	return sum(q, kv, product(a.Dim, a.Heads, value))
}

// weights of a mixture: experts with two or three matrices each, those that
// every token passes, and a router; their biases are matrices too, a row an
// expert.
func (m MoE) weights() weights {
	expert := product(m.Experts, m.Dim, m.Hidden)
	return weights{
		what:  fmt.Sprintf("%d experts of %d → %d → %d", m.Experts, m.Dim, m.Hidden, m.Dim),
		least: product(2, expert),
		most: sum(product(3, expert), product(3, m.Dim, m.SharedHidden), product(m.Experts, m.Dim),
			product(m.Experts, sum(2*m.Hidden, m.Dim)), m.Dim),
	}
}

// product multiplies, and stays at the largest number where that is too small.
func product(factors ...int64) int64 {
	n := uint64(1)
	for _, f := range factors {
		hi, lo := bits.Mul64(n, uint64(max(0, f)))
		if hi != 0 || lo > math.MaxInt64 {
			lo = math.MaxInt64
			if slices.Contains(factors, 0) {
				lo = 0
			}
			return int64(lo)
		}
		n = lo
	}
	return int64(n)
}

// sum adds, likewise.
func sum(terms ...int64) int64 {
	n := int64(0)
	for _, t := range terms {
		if n += t; n < 0 {
			return math.MaxInt64
		}
	}
	return n
}
