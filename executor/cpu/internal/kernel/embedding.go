package kernel

import "fmt"

// embedding writes rows of a table, times a scale that has the table's type
// (Gemma3TextScaledWordEmbedding), or adds them to the stream.
func embedding(call *Call) error {
	matrices, err := call.need("table", "y")
	if err != nil {
		return err
	}
	table, y := matrices[0], matrices[1]
	rows, err := call.lookups(y.Rows, table.Rows)
	if err != nil {
		return err
	}
	scale, add := call.scale(table), call.matrix("add")
	inRows(y.Rows, y.Columns, func(first, end int64) {
		made, buffer := make([]float32, y.Columns), make([]float32, y.Columns)
		for i := first; i < end; i++ {
			table.Load(rows[i], 0, made)
			if scale != 1 {
				for j := range made {
					made[j] *= scale
				}
				y.round(made)
			}
			if add != nil {
				addTo(made, add.row(i, buffer))
			}
			y.Store(i, 0, made)
		}
	})
	return nil
}

// scale is the factor of rows, rounded to the table's type.
func (call *Call) scale(table *Matrix) float32 {
	scale := []float32{float32(call.number("scale", 1))}
	table.round(scale)
	return scale[0]
}

// lookups returns the row of the table for each row of the stream: by token id, or by position
// without ids. The argument table is the number of the table's rows.
func (call *Call) lookups(count, table int64) ([]int64, error) {
	ids, rows := call.matrix("ids"), make([]int64, count)
	for i := range rows {
		if ids != nil {
			rows[i] = int64(ids.Int(int64(i)/ids.Columns, int64(i)%ids.Columns))
		} else {
			rows[i] = call.position(int64(i))
		}
		if rows[i] < 0 || rows[i] >= table {
			return nil, fmt.Errorf("token %d has the id or position %d, and the table %d rows", i, rows[i], table)
		}
	}
	return rows, nil
}

// embeddingBackward adds up the stream's gradient for each row of the table, over its tokens in
// order. The row "padding" gets no gradient (nn.Embedding: padding_idx).
func embeddingBackward(call *Call) error {
	matrices, err := call.need("dy", "d")
	if err != nil {
		return err
	}
	dy, d := matrices[0], matrices[1]
	adds := call.adds("d")
	sum, buffer := make([]float32, d.Columns), make([]float32, d.Columns)
	if !adds {
		for i := range d.Rows {
			d.Store(i, 0, sum)
		}
	}
	scale, padding := call.scale(dy), call.size("padding", -1)
	return call.groups(dy.Rows, func(row int64, tokens []int32) error {
		if row == padding {
			return nil
		}
		if row < 0 || row >= d.Rows {
			return fmt.Errorf("token %d has the id or position %d, and the table %d rows", tokens[0], row, d.Rows)
		}
		clear(sum)
		if adds {
			d.Load(row, 0, sum)
		}
		for _, token := range tokens {
			for j, value := range dy.row(int64(token), buffer) {
				sum[j] += scale * value
			}
		}
		d.Store(row, 0, sum)
		return nil
	})
}

// groups calls f for every row of the table that tokens use, with these tokens in order. They are
// runs of the sorted ids or, without ids, the tokens of all sequences at one position.
func (call *Call) groups(count int64, f func(row int64, tokens []int32) error) error {
	order := call.matrix("order")
	if order == nil {
		seq := call.size("seq", count)
		tokens := make([]int32, count/seq)
		for position := range seq {
			for i := range tokens {
				tokens[i] = int32(int64(i)*seq + position)
			}
			if err := f(position, tokens); err != nil {
				return err
			}
		}
		return nil
	}
	ids, tokens := stretch[int32](order, 0, 0, int(count)), stretch[int32](order, 1, 0, int(count))
	for first := 0; first < len(ids); {
		end := first + 1
		for end < len(ids) && ids[end] == ids[first] {
			end++
		}
		if err := f(int64(ids[first]), tokens[first:end]); err != nil {
			return err
		}
		first = end
	}
	return nil
}
