package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// head projects to the vocabulary. In training logits are made for a part of
// the vocabulary at a time, for all tokens, and are gone when it is done:
// forward keeps a running maximum and sum of exponentials a token
// (Milakov and Gimelshein, arXiv 1805.02867), backward makes each part again,
// turns it in place into its gradient, and is done with it. A part's rows of
// the weight get their gradient in one product over all tokens, so that it is
// rounded as often as without parts; the input's gradient is summed in fp32.
type head struct {
	op    modelgraph.Head
	l     *linear
	width int64 // of a part, at most
	x     int
	lse   int
}

// partWidth is about how many entries of the vocabulary a part has: as wide as
// products need to be fast, and a scratch like that of a block's feed-forward.
const partWidth = 8192

// mostParts bounds the kernels of a head.
const mostParts = 64

// vocabAlign is what widths of logits are rounded up to, for aligned rows.
const vocabAlign = 128

func (w *writer) head(layer int) error {
	op, _ := w.graph.Layers[layer].Op.(modelgraph.Head)
	if err := w.carries(layer, op.Dim); err != nil {
		return err
	}
	if err := w.heads(layer, &op); err != nil {
		return err
	}
	l, err := w.linearOf(layer, op.Dim, op.Vocab, false, "")
	if err != nil {
		return err
	}
	h := &head{op: op, l: l, x: w.from()}
	if w.train {
		parts := min((op.Vocab+partWidth-1)/partWidth, mostParts)
		h.width = roundUp((op.Vocab+parts-1)/parts, vocabAlign)
		h.loss(w)
		w.backs = append(w.backs, func() { h.backward(w) })
		return nil
	}
	h.predict(w)
	return nil
}

func roundUp(value, multiple int64) int64 { return (value + multiple - 1) / multiple * multiple }

// predict makes the logits of every token, or where tokens are generated those
// of the last one and the likeliest id.
func (h *head) predict(w *writer) {
	rows, x := w.count, h.x
	if w.generates {
		rows = w.sequences
		if w.pass == Forward {
			x = w.temporary("last", w.dtype, rows, h.op.Dim)
			w.kernel("last", []Dim{size("sequences", rows), size("seq", w.seq), size("columns", h.op.Dim)}, in("x", h.x), out("y", x)).Bytes = float64(2 * rows * h.op.Dim * bytesOf(w.dtype))
		}
	}
	logits := w.shared(&w.regions.Result, Tensor{Name: "logits", Class: Result, DType: w.dtype, Rows: rows, Columns: roundUp(h.op.Vocab, 8)})
	part := w.columns(out("d", logits), 0, h.op.Vocab)
	w.project(h.l, in("a", x), part)
	if h.op.SoftCap {
		w.kernel("softcap", []Dim{size("rows", rows), size("columns", h.op.Vocab), number("cap", h.op.LogitCap)}, part.as("x").mode(Update))
	}
	if w.generates {
		ids := w.shared(&w.regions.Result, Tensor{Name: "ids", Class: Result, DType: int32Type, Rows: w.workload.Batch, Columns: 1, Parts: true})
		w.kernel("argmax", []Dim{size("rows", rows), size("columns", h.op.Vocab)}, part.as("x").mode(Read), out("y", ids))
	}
}

// parts calls f for every part of the vocabulary.
func (h *head) parts(f func(first, count int64)) {
	for first := int64(0); first < h.op.Vocab; first += h.width {
		f(first, min(h.width, h.op.Vocab-first))
	}
}

// logits makes those of a part.
func (h *head) logits(w *writer, logits int, first, count int64) {
	operands := []Operand{in("a", h.x), w.rowsOf(in("b", h.l.weight.value), first, count)}
	if h.l.bias != nil {
		operands = append(operands, w.columns(in("bias", h.l.bias.value), first, count))
	}
	w.product("nt", w.count, count, h.op.Dim, append(operands, w.columns(out("d", logits), 0, count))...)
}

// dims are those of the loss's kernels: labels are those of the next token.
func (h *head) dims(w *writer, first, count int64) []Dim {
	dims := []Dim{size("sequences", w.sequences), size("seq", w.seq), size("first", first), size("columns", count)}
	if h.op.SoftCap {
		dims = append(dims, number("cap", h.op.LogitCap))
	}
	return dims
}

func (w *writer) labels() int {
	return w.shared(&w.regions.Feed, Tensor{Name: "labels", Class: Feed, DType: int32Type, Rows: w.workload.Batch, Columns: w.seq, Parts: true})
}

func (h *head) loss(w *writer) {
	labels := w.labels()
	logits := w.temporary("logits", w.dtype, w.count, h.width)
	// A token's largest logit, its sum of exponentials, and its label's logit.
	sums := w.temporary("softmax", modelgraph.F32, w.count, 3)
	h.parts(func(first, count int64) {
		h.logits(w, logits, first, count)
		running := both("sums", sums)
		if first == 0 {
			running = out("sums", sums)
		}
		w.kernel("softmax_sums", h.dims(w, first, count), w.columns(in("x", logits), 0, count), in("labels", labels), running)
	})
	h.lse = w.kept("lse", modelgraph.F32, w.count, 1)
	losses := w.shared(&w.regions.Result, Tensor{Name: "losses", Class: Result, DType: modelgraph.F32, Rows: w.workload.MicroBatches, Columns: 1, Parts: true})
	w.kernel("loss", []Dim{size("sequences", w.sequences), size("seq", w.seq)}, in("sums", sums), in("labels", labels), out("lse", h.lse), out("loss", losses))
}

func (h *head) backward(w *writer) {
	labels := w.labels()
	counted := w.temporary("counted", modelgraph.F32, 1, 1)
	w.kernel("count", []Dim{size("sequences", w.sequences), size("seq", w.seq)}, in("labels", labels), out("y", counted))
	logits := w.temporary("logits.gradient", w.dtype, w.count, h.width)
	dx := w.gone()
	sum := dx
	if h.width < h.op.Vocab && w.dtype != modelgraph.F32 {
		sum = w.temporary("input.sum", modelgraph.F32, w.count, h.op.Dim)
	}
	h.parts(func(first, count int64) {
		h.logits(w, logits, first, count)
		part := w.columns(both("x", logits), 0, count)
		w.kernel("loss_backward", h.dims(w, first, count), part, in("lse", h.lse), in("labels", labels), in("counted", counted))
		part = part.mode(Read)
		w.product("tn", count, h.op.Dim, w.count, part.as("a"), in("b", h.x), w.rowsOf(gather("d", h.l.weight.gradient), first, count))
		if h.l.bias != nil {
			h.biasBack(w, part, first, count)
		}
		operands := []Operand{part.as("a"), w.rowsOf(in("b", h.l.weight.value), first, count)}
		if first > 0 {
			operands = append(operands, in("add", sum))
		}
		w.product("nn", w.count, h.op.Dim, count, append(operands, out("d", sum))...)
	})
	if sum != dx {
		w.kernel("cast", []Dim{size("rows", w.count), size("columns", h.op.Dim)}, in("x", sum), out("y", dx))
	}
}

// biasBack makes a part of the bias's gradient.
func (h *head) biasBack(w *writer, dy Operand, first, count int64) {
	parts := partsOf(w.count)
	sums := w.temporary("sums", modelgraph.F32, parts, count)
	w.kernel("column_sums", []Dim{size("rows", w.count), size("columns", count)}, dy.as("x"), out("sums", sums))
	w.kernel("add_rows", []Dim{size("rows", parts), size("columns", count)}, in("x", sums), w.columns(gather("d", h.l.bias.gradient), first, count))
}
