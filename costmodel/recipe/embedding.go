package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// embedding makes the stream of rows of a table, or adds them to it: rows of
// tokens, of positions, or of token types.
func (w *writer) embedding(layer int, last bool) error {
	op, _ := w.graph.Layers[layer].Op.(modelgraph.Embedding)
	if err := w.carries(layer, op.Dim); err != nil {
		return err
	}
	table, err := w.need(layer, op.Vocab, op.Dim, "weight", "word_embeddings.weight", "")
	if err != nil {
		return err
	}
	if err := w.indexes(layer, &op); err != nil {
		return err
	}
	dims := []Dim{size("rows", w.count), size("columns", op.Dim)}
	if op.Scaled {
		dims = append(dims, number("scale", op.Factor))
	}
	var operands []Operand
	if len(w.inputs(layer)) > 0 {
		operands = append(operands, in("add", w.from()))
	}
	ids := -1
	if op.Index == modelgraph.PositionIndex {
		dims = append(dims, w.place0()...)
	} else {
		ids = w.ids(op.Index)
		operands = append(operands, in("ids", ids))
	}
	y := w.to(last)
	rows := min(w.count, op.Vocab)
	operands = append(operands, w.rowsOf(in("table", table.value), 0, rows), out("y", y))
	w.kernel("embedding", dims, operands...)
	w.code.whole(w.routine)
	if w.train {
		w.backs = append(w.backs, func() { w.embeddingBack(table, ids, dims) })
	}
	return nil
}

// whole makes the table of the last kernel an operand as a whole: its rows
// were those that are read, to be counted.
func (code *Code) whole(routine *Routine) {
	kernel := &routine.Kernels[len(routine.Kernels)-1]
	for i := range kernel.Operands {
		if operand := &kernel.Operands[i]; operand.Role == "table" {
			operand.Rows, operand.Columns = 0, 0
		}
	}
}

// ids is what rows are looked up by: of the batch, which was fed, or in
// generation the tokens that were made last.
func (w *writer) ids(index modelgraph.Index) int {
	if w.pass == Decode {
		return w.shared(new(int64), Tensor{Name: "token.ids", Class: Token, DType: int32Type, Rows: w.sequences, Columns: 1})
	}
	name := "ids"
	if index == modelgraph.TypeIndex {
		name = "types"
	}
	return w.shared(&w.regions.Feed, Tensor{Name: name, Class: Feed, DType: int32Type, Rows: w.workload.Batch, Columns: w.seq, Parts: true})
}

// embeddingBack adds the stream's gradient up by row of the table: ids are
// sorted, stably, so that the rows of one id are added in the order of the
// tokens.
func (w *writer) embeddingBack(table *weight, ids int, dims []Dim) {
	dy := w.gradient()
	moved := float64(3 * w.count * w.width * bytesOf(w.dtype))
	if ids < 0 {
		w.kernel("embedding_backward", dims, in("dy", dy), gather("d", table.gradient)).Bytes = moved
		return
	}
	order := w.temporary("order", int32Type, 2, w.count)
	work := w.temporary("order.work", int32Type, 2, w.count)
	w.kernel("sort", []Dim{size("rows", w.count)}, in("ids", ids), out("order", order), out("work", work))
	w.kernel("embedding_backward", dims, in("order", order), in("dy", dy), gather("d", table.gradient)).Bytes = moved
}
