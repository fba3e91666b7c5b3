package recipe

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is softmax(q·kᵀ)·v between two projections, by kernels that keep
// the scores in registers and a log-sum-exp a row for backward (FlashAttention-2,
// arXiv 2307.08691). Backward needs q and k as they meet, v, the output and
// that; q and k that are normed are kept before, and normed and turned again.
type attention struct {
	op        modelgraph.Attention
	layer     int
	qkv       []*linear // one where they are fused
	out       *linear
	qw, kw    *weight // of the norms on q and k
	width, kv int64   // of q, and of k and v

	q, k, v  Operand // as the projection makes them
	y, lse   int
	gradient []Operand // of what the projections make
}

func (w *writer) attentionOf(layer int, op modelgraph.Attention) (core, error) {
	if err := w.attends(layer, &op); err != nil {
		return nil, err
	}
	if float64(op.Heads)*float64(op.HeadDim) > 1<<40 {
		return nil, unrunnable(&w.graph.Layers[layer], "%d heads of %d are more than 2^40 values", op.Heads, op.HeadDim)
	}
	a := &attention{op: op, layer: layer, width: op.Heads * op.HeadDim, kv: op.KVHeads * op.HeadDim}
	type projection struct {
		out   int64
		names []string
	}
	projections := []projection{
		{a.width, []string{"q_proj", "self.query"}}, {a.kv, []string{"k_proj", "self.key"}}, {a.kv, []string{"v_proj", "self.value"}},
	}
	if op.Fused {
		projections = []projection{{a.width + 2*a.kv, []string{"qkv_proj", "c_attn", "W_pack"}}}
	}
	for _, p := range projections {
		l, err := w.linearOf(layer, op.Dim, p.out, op.Transposed, p.names...)
		if err != nil {
			return nil, err
		}
		a.qkv = append(a.qkv, l)
	}
	var err error
	if a.out, err = w.linearOf(layer, a.width, op.Dim, op.Transposed, "o_proj", "c_proj", "output.dense", "out_proj", "dense"); err != nil {
		return nil, err
	}
	if op.QKNorm != "" {
		if a.qw, err = w.need(layer, 1, op.HeadDim, "q_norm.weight"); err == nil {
			a.kw, err = w.need(layer, 1, op.HeadDim, "k_norm.weight")
		}
	}
	return a, err
}

// parts are q, k and v in the tensors of the projections.
func (a *attention) parts(w *writer, tensors []int) (q, k, v Operand) {
	if len(tensors) == 1 {
		return w.columns(in("q", tensors[0]), 0, a.width), w.columns(in("k", tensors[0]), a.width, a.kv), w.columns(in("v", tensors[0]), a.width+a.kv, a.kv)
	}
	return in("q", tensors[0]), in("k", tensors[1]), in("v", tensors[2])
}

// names of what the projections make.
func (a *attention) names(suffix string) []string {
	if len(a.qkv) == 1 {
		return []string{"qkv" + suffix}
	}
	return []string{"q" + suffix, "k" + suffix, "v" + suffix}
}

func (a *attention) forward(w *writer, h int, y Operand, add ...Operand) {
	tensors := make([]int, len(a.qkv))
	for i, name := range a.names("") {
		tensors[i] = w.kept(name, w.dtype, w.count, a.qkv[i].out)
		w.project(a.qkv[i], in("a", h), out("d", tensors[i]))
	}
	a.q, a.k, a.v = a.parts(w, tensors)
	q, k := a.turned(w, "")
	a.y = w.kept("attention", w.dtype, w.count, a.width)
	switch {
	case w.pass == Decode:
		a.decode(w, q, k)
	case w.generates && !a.op.Bidirectional:
		a.remember(w, k)
		fallthrough
	default:
		a.attend(w, q, k)
	}
	w.project(a.out, in("a", a.y), y, add...)
}

// turned are q and k after their norms and their rotation: in place, but where
// backward needs what the norms read.
func (a *attention) turned(w *writer, suffix string) (q, k Operand) {
	switch {
	case a.qw == nil && !a.op.Rope:
		return a.q, a.k
	case a.qw == nil:
		w.kernel("rope", a.rotation(w), a.q.mode(Update), a.k.mode(Update))
		return a.q, a.k
	}
	q, k = a.q, a.k
	if w.train {
		q = in("q", w.temporary("q.normed"+suffix, w.dtype, w.count, a.width))
		k = in("k", w.temporary("k.normed"+suffix, w.dtype, w.count, a.kv))
	}
	w.kernel("qknorm", a.rotation(w), a.q, a.k, in("qweight", a.qw.value), in("kweight", a.kw.value), q.as("yq").mode(Write), k.as("yk").mode(Write))
	return q, k
}

// rotation are the sizes and constants of the kernels that norm and turn
// heads: cosines and sines are worked out where they are used.
func (a *attention) rotation(w *writer) []Dim {
	op := &a.op
	dims := []Dim{size("rows", w.count), size("heads", op.Heads), size("kv", op.KVHeads), size("dim", op.HeadDim)}
	if a.qw != nil {
		dims = append(dims, word("style", string(op.QKNorm)), number("epsilon", op.QKEpsilon))
	}
	if !op.Rope {
		return dims
	}
	dims = append(dims, w.place0()...)
	turn := op.Rotation
	dims = append(dims, word("rope", orDefault(turn.Type)), size("width", orInt(turn.Width, op.HeadDim)), number("base", orFloat(turn.Base, 10_000)))
	for _, constant := range []struct {
		name  string
		value float64
	}{{"factor", turn.Factor}, {"trained", float64(turn.Trained)}, {"slow", turn.Slow}, {"fast", turn.Fast}, {"attention_factor", turn.AttentionFactor}} {
		if constant.value != 0 {
			dims = append(dims, number(constant.name, constant.value))
		}
	}
	if turn.Untruncated {
		dims = append(dims, word("truncate", "false"))
	}
	return dims
}

// place0 says where rows stand in their sequences: each sequence begins at 0,
// or all rows stand at the position that is decoded, behind so many of the
// prompt.
func (w *writer) place0() []Dim {
	if w.pass == Decode {
		return []Dim{size("past", w.seq)}
	}
	return []Dim{size("seq", w.seq)}
}

func orDefault(kind string) string {
	if kind == "" {
		return "default"
	}
	return kind
}

func orInt(value, otherwise int64) int64 {
	if value == 0 {
		return otherwise
	}
	return value
}

func orFloat(value, otherwise float64) float64 {
	if value == 0 {
		return otherwise
	}
	return value
}

// dims are those of attention's kernels.
func (a *attention) dims(w *writer) []Dim {
	op := &a.op
	dims := []Dim{size("sequences", w.sequences), size("heads", op.Heads), size("kv", op.KVHeads), size("dim", op.HeadDim)}
	dims = append(dims, w.place0()...)
	if !op.Bidirectional {
		dims = append(dims, size("causal", 1))
	}
	if op.Window > 0 {
		dims = append(dims, size("window", op.Window))
	}
	scale := orFloat(op.Scale, 1/math.Sqrt(float64(op.HeadDim)))
	dims = append(dims, number("scale", scale))
	if op.ScoreCap > 0 {
		dims = append(dims, number("cap", op.ScoreCap))
	}
	return dims
}

// products is the FLOPs of one product over all pairs of a query and a key
// that it sees.
func (a *attention) products(w *writer) float64 {
	seq := float64(w.seq)
	pairs := seq * seq
	if !a.op.Bidirectional {
		window := seq
		if a.op.Window > 0 {
			window = min(seq, float64(a.op.Window))
		}
		pairs = window*(window+1)/2 + (seq-window)*window
	}
	return 2 * float64(w.sequences) * pairs * float64(a.width)
}

func (a *attention) attend(w *writer, q, k Operand) {
	operands := []Operand{q, k, a.v, out("y", a.y)}
	if w.train {
		a.lse = w.kept("lse", modelgraph.F32, w.count, a.op.Heads)
		operands = append(operands, out("lse", a.lse))
	}
	w.kernel("attention", a.dims(w), operands...).Attention = 2 * a.products(w)
}

func (a *attention) backward(w *writer, dy int, normed func() int, dh func() (Operand, []Operand)) {
	w.learn(a.out, in("a", a.y), in("dy", dy))
	gradient := w.temporary("attention.gradient", w.dtype, w.count, a.width)
	w.back(a.out, in("dy", dy), out("d", gradient))
	a.attendBack(w, gradient)
	h := normed()
	for i, l := range a.qkv {
		w.learn(l, in("a", h), a.gradient[i])
	}
	w.backAll(a.qkv, a.gradient, dh)
}

// attendBack makes the gradients of q, k and v. Two kernels, one over keys and
// one over queries, each own what they write: the scores are made twice, and
// nothing is added up in an order that depends on the GPU.
func (a *attention) attendBack(w *writer, dy int) {
	q, k := a.q, a.k
	if a.qw != nil {
		q, k = a.turned(w, ".again")
	}
	delta := w.temporary("delta", modelgraph.F32, w.count, a.op.Heads)
	w.kernel("attention_delta", []Dim{size("rows", w.count), size("heads", a.op.Heads), size("dim", a.op.HeadDim)}, in("y", a.y), in("dy", dy), out("delta", delta))
	tensors := make([]int, len(a.qkv))
	a.gradient = make([]Operand, len(a.qkv))
	for i, name := range a.names(".gradient") {
		tensors[i] = w.temporary(name, w.dtype, w.count, a.qkv[i].out)
		a.gradient[i] = in("dy", tensors[i])
	}
	dq, dk, dv := a.parts(w, tensors)
	inputs := []Operand{q, k, a.v, in("dy", dy), in("lse", a.lse), in("delta", delta)}
	w.kernel("attention_dkv", a.dims(w), append(inputs[:6:6], dk.as("dk").mode(Write), dv.as("dv").mode(Write))...).Attention = 4 * a.products(w)
	w.kernel("attention_dq", a.dims(w), append(inputs[:6:6], dq.as("dq").mode(Write))...).Attention = 3 * a.products(w)
	a.turnBack(w, dq.as("dq"), dk.as("dk"))
}

// turnBack turns the gradients of q and k back, and takes them through the
// norms, in place.
func (a *attention) turnBack(w *writer, dq, dk Operand) {
	dq, dk = dq.mode(Update), dk.mode(Update)
	switch {
	case a.qw == nil && !a.op.Rope:
	case a.qw == nil:
		w.kernel("rope_backward", a.rotation(w), dq, dk)
	default:
		parts := partsOf(w.count)
		qsums := w.temporary("q.sums", modelgraph.F32, parts, a.op.HeadDim)
		ksums := w.temporary("k.sums", modelgraph.F32, parts, a.op.HeadDim)
		w.kernel("qknorm_backward", a.rotation(w), a.q, a.k, in("qweight", a.qw.value), in("kweight", a.kw.value), dq, dk, out("qsums", qsums), out("ksums", ksums))
		w.addSums(qsums, a.qw)
		w.addSums(ksums, a.kw)
	}
}
