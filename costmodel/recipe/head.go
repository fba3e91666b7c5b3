package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// head projects to the vocabulary. Training makes the logits of one part of the vocabulary at a
// time, for all tokens. Forward keeps a running maximum and sum of exponentials a token (Milakov
// and Gimelshein, arXiv 1805.02867). Backward makes each part again and turns it into its gradient
// in place. One product over all tokens makes the gradient of a part's rows of the weight, with the
// same rounding as without parts; the input's gradient is summed in fp32.
type head struct {
	op     modelgraph.Head
	linear *linear
	width  int64 // of a part, at most
	x      int
	lse    int
}

// partWidth is about how many entries of the vocabulary a part has: wide enough for fast products,
// with scratch as large as a feed-forward's.
const partWidth = 8192

// mostParts bounds the kernels of a head.
const mostParts = 64

// vocabAlign is what widths of logits are rounded up to, for aligned rows.
const vocabAlign = 128

func (writer *writer) head(layer int) error {
	op, _ := writer.graph.Layers[layer].Op.(modelgraph.Head)
	if err := writer.carries(layer, op.Dim); err != nil {
		return err
	}
	if err := writer.heads(layer, &op); err != nil {
		return err
	}
	linear, err := writer.linearOf(layer, op.Dim, op.Vocab, false, "")
	if err != nil {
		return err
	}
	head := &head{op: op, linear: linear, x: writer.from()}
	if writer.train {
		parts := min((op.Vocab+partWidth-1)/partWidth, mostParts)
		head.width = roundUp((op.Vocab+parts-1)/parts, vocabAlign)
		head.loss(writer)
		writer.backs = append(writer.backs, func() { head.backward(writer) })
		return nil
	}
	head.predict(writer)
	return nil
}

func roundUp(value, multiple int64) int64 { return (value + multiple - 1) / multiple * multiple }

// predict makes the logits of every token; in generation only the last one's, and the likeliest id.
func (head *head) predict(writer *writer) {
	rows, x := writer.count, head.x
	if writer.generates {
		rows = writer.sequences
		if writer.pass == passForward {
			x = writer.temporary("last", writer.dtype, rows, head.op.Dim)
			writer.kernel("last", []Dim{size("sequences", rows), size("seq", writer.seq), size("columns", head.op.Dim)}, in("x", head.x), out("y", x)).Bytes = float64(2 * rows * head.op.Dim * bytesOf(writer.dtype))
		}
	}
	logits := writer.shared(&writer.regions.Result, Tensor{Name: "logits", Class: classResult, DType: writer.dtype, Rows: rows, Columns: roundUp(head.op.Vocab, 8)})
	part := writer.columns(out("d", logits), 0, head.op.Vocab)
	head.linear.project(writer, in("a", x), part)
	if head.op.SoftCap {
		writer.kernel("softcap", []Dim{size("rows", rows), size("columns", head.op.Vocab), number("cap", head.op.LogitCap)}, part.as("x").mode(modeUpdate))
	}
	if writer.generates {
		ids := writer.shared(&writer.regions.Result, Tensor{Name: "ids", Class: classResult, DType: int32Type, Rows: writer.workload.Batch, Columns: 1, Parts: true})
		writer.kernel("argmax", []Dim{size("rows", rows), size("columns", head.op.Vocab)}, part.as("x").mode(modeRead), out("y", ids))
	}
}

// parts calls f for every part of the vocabulary.
func (head *head) parts(f func(first, count int64)) {
	for first := int64(0); first < head.op.Vocab; first += head.width {
		f(first, min(head.width, head.op.Vocab-first))
	}
}

// logits makes a part's logits.
func (head *head) logits(writer *writer, logits int, first, count int64) {
	operands := []Operand{in("a", head.x), writer.rowsOf(in("b", head.linear.weight.value), first, count)}
	if head.linear.bias != nil {
		operands = append(operands, writer.columns(in("bias", head.linear.bias.value), first, count))
	}
	writer.product("nt", writer.count, count, head.op.Dim, append(operands, writer.columns(out("d", logits), 0, count))...)
}

// dims are the dimensions of the loss's kernels; labels are the next tokens. A step's loss is the mean
// over micro-batches of the mean over their counted labels, so gradients add up to its gradient.
func (head *head) dims(writer *writer, first, count int64) []Dim {
	dims := []Dim{size("sequences", writer.sequences), size("seq", writer.seq), size("first", first), size("columns", count)}
	if head.op.SoftCap {
		dims = append(dims, number("cap", head.op.LogitCap))
	}
	return dims
}

func (writer *writer) labels() int {
	return writer.shared(&writer.regions.Feed, Tensor{Name: "labels", Class: classFeed, DType: int32Type, Rows: writer.workload.Batch, Columns: writer.seq, Parts: true})
}

func (head *head) loss(writer *writer) {
	labels := writer.labels()
	logits := writer.temporary("logits", writer.dtype, writer.count, head.width)
	// A token's largest logit, its sum of exponentials, and its label's logit.
	sums := writer.temporary("softmax", modelgraph.F32, writer.count, 3)
	head.parts(func(first, count int64) {
		head.logits(writer, logits, first, count)
		running := both("sums", sums)
		if first == 0 {
			running = out("sums", sums)
		}
		writer.kernel("softmax_sums", head.dims(writer, first, count), writer.columns(in("x", logits), 0, count), in("labels", labels), running)
	})
	head.lse = writer.saved("lse", modelgraph.F32, writer.count, 1)
	losses := writer.shared(&writer.regions.Result, Tensor{Name: "losses", Class: classResult, DType: modelgraph.F32, Rows: writer.workload.MicroBatches, Columns: 1, Parts: true})
	writer.kernel("loss", []Dim{size("sequences", writer.sequences), size("seq", writer.seq)}, in("sums", sums), in("labels", labels), out("lse", head.lse), out("loss", losses))
}

func (head *head) backward(writer *writer) {
	labels := writer.labels()
	counted := writer.temporary("counted", modelgraph.F32, 1, 1)
	writer.kernel("count", []Dim{size("sequences", writer.sequences), size("seq", writer.seq)}, in("labels", labels), out("y", counted))
	logits := writer.temporary("logits.gradient", writer.dtype, writer.count, head.width)
	dx := writer.gone()
	sum := dx
	if head.width < head.op.Vocab && writer.dtype != modelgraph.F32 {
		sum = writer.temporary("input.sum", modelgraph.F32, writer.count, head.op.Dim)
	}
	head.parts(func(first, count int64) {
		head.logits(writer, logits, first, count)
		part := writer.columns(both("x", logits), 0, count)
		dims := append(head.dims(writer, first, count), size("micro_batches", writer.workload.MicroBatches))
		writer.kernel("loss_backward", dims, part, in("lse", head.lse), in("labels", labels), in("counted", counted))
		part = part.mode(modeRead)
		writer.product("tn", count, head.op.Dim, writer.count, part.as("a"), in("b", head.x), writer.rowsOf(gather(head.linear.weight.gradient), first, count))
		if head.linear.bias != nil {
			head.biasBack(writer, part, first, count)
		}
		operands := []Operand{part.as("a"), writer.rowsOf(in("b", head.linear.weight.value), first, count)}
		if first > 0 {
			operands = append(operands, in("add", sum))
		}
		writer.product("nn", writer.count, head.op.Dim, count, append(operands, out("d", sum))...)
	})
	if sum != dx {
		writer.kernel("cast", []Dim{size("rows", writer.count), size("columns", head.op.Dim)}, in("x", sum), out("y", dx))
	}
}

// biasBack makes a part of the bias's gradient.
func (head *head) biasBack(writer *writer, dy Operand, first, count int64) {
	parts := partsOf(writer.count)
	sums := writer.temporary("sums", modelgraph.F32, parts, count)
	writer.kernel("column_sums", []Dim{size("rows", writer.count), size("columns", count)}, dy.as("x"), out("sums", sums))
	writer.kernel("add_rows", []Dim{size("rows", parts), size("columns", count)}, in("x", sums), writer.columns(gather(head.linear.bias.gradient), first, count))
}
