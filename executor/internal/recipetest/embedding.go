package recipetest

import "sort"

// row returns the row of a table for row i.
func (run *kernelRun) row(i int64) int64 {
	if !run.given("ids") {
		return run.position(i)
	}
	ids := run.operand("ids")
	return int64(*ids.At(i/ids.Columns, i%ids.Columns))
}

func (run *kernelRun) scale() float64 {
	if run.has("scale") {
		return run.number("scale")
	}
	return 1
}

func embeddingKernel(run *kernelRun) {
	table := run.operand("table")
	run.operand("y").each(func(i, j int64, at *float64) {
		value := *table.At(run.row(i), j) * run.scale()
		if run.given("add") {
			value += *run.operand("add").At(i, j)
		}
		*at = value
	})
}

// sortKernel writes ids in order, and their rows.
func sortKernel(run *kernelRun) {
	ids, order := run.operand("ids"), run.operand("order")
	rows := make([]int64, run.size("rows"))
	for i := range rows {
		rows[i] = int64(i)
	}
	sort.SliceStable(rows, func(a, b int) bool {
		return *ids.At(rows[a]/ids.Columns, rows[a]%ids.Columns) < *ids.At(rows[b]/ids.Columns, rows[b]%ids.Columns)
	})
	for i, row := range rows {
		*order.At(0, int64(i)), *order.At(1, int64(i)) = *ids.At(row/ids.Columns, row%ids.Columns), float64(row)
	}
}

func embeddingBackward(run *kernelRun) {
	dy, d := run.operand("dy"), run.operand("d")
	run.begin("d")
	for i := range run.size("rows") {
		from, to := i, int64(-1)
		if run.given("order") {
			from, to = int64(*run.operand("order").At(1, i)), int64(*run.operand("order").At(0, i))
		}
		if to < 0 {
			to = run.position(i)
		}
		if run.has("padding") && to == run.size("padding") {
			continue
		}
		for j := range run.size("columns") {
			*d.At(to, j) += run.scale() * *dy.At(from, j)
		}
	}
}
