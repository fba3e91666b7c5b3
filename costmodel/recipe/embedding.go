package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// embedding writes or adds to the stream rows of a table: of tokens, positions, or token types.
func (writer *writer) embedding(layer int, last bool) error {
	op, _ := writer.graph.Layers[layer].Op.(modelgraph.Embedding)
	if err := writer.carries(layer, op.Dim); err != nil {
		return err
	}
	table, err := writer.need(layer, op.Vocab, op.Dim, "weight", "word_embeddings.weight", "")
	if err != nil {
		return err
	}
	if err := writer.indexes(layer, &op); err != nil {
		return err
	}
	dims := []Dim{size("rows", writer.count), size("columns", op.Dim)}
	if op.Scaled {
		dims = append(dims, number("scale", op.Factor))
	}
	var operands []Operand
	if len(writer.inputs(layer)) > 0 {
		operands = append(operands, in("add", writer.from()))
	}
	ids := -1
	if op.Index == modelgraph.PositionIndex {
		dims = append(dims, writer.place0()...)
	} else {
		ids = writer.ids(op.Index)
		operands = append(operands, in("ids", ids))
	}
	y := writer.to(last)
	rows := min(writer.count, op.Vocab)
	operands = append(operands, writer.rowsOf(in("table", table.value), 0, rows), out("y", y))
	writer.kernel("embedding", dims, operands...)
	writer.code.whole(writer.routine)
	if writer.train {
		if op.Padding > 0 {
			dims = append(dims, size("padding", op.Padding-1))
		}
		writer.backs = append(writer.backs, func() { writer.embeddingBack(table, ids, dims) })
	}
	return nil
}

// whole makes the last kernel's table an operand as a whole; only the rows read count as traffic.
func (code *Code) whole(routine *Routine) {
	kernel := &routine.Kernels[len(routine.Kernels)-1]
	for i := range kernel.Operands {
		if operand := &kernel.Operands[i]; operand.Role == "table" {
			operand.Rows, operand.Columns = 0, 0
		}
	}
}

// ids are the looked-up rows: the batch's, or in generation the last generated tokens.
func (writer *writer) ids(index string) int {
	if writer.pass == passDecode {
		return writer.shared(new(int64), Tensor{Name: "token.ids", Class: classToken, DType: int32Type, Rows: writer.sequences, Columns: 1})
	}
	name := "ids"
	if index == modelgraph.TypeIndex {
		name = "types"
	}
	return writer.shared(&writer.regions.Feed, Tensor{Name: name, Class: classFeed, DType: int32Type, Rows: writer.workload.Batch, Columns: writer.seq, Parts: true})
}

// embeddingBack adds up the stream's gradient by row of the table. A stable sort of the ids keeps
// the order of the tokens in each sum. The row "padding" gets none (nn.Embedding: padding_idx).
func (writer *writer) embeddingBack(table *weight, ids int, dims []Dim) {
	dy := writer.gradient()
	moved := float64(3 * writer.count * writer.width * bytesOf(writer.dtype))
	if ids < 0 {
		writer.kernel("embedding_backward", dims, in("dy", dy), gather(table.gradient)).Bytes = moved
		return
	}
	order := writer.temporary("order", int32Type, 2, writer.count)
	work := writer.temporary("order.work", int32Type, 2, writer.count)
	writer.kernel("sort", []Dim{size("rows", writer.count)}, in("ids", ids), out("order", order), out("work", work))
	writer.kernel("embedding_backward", dims, in("order", order), in("dy", dy), gather(table.gradient)).Bytes = moved
}
