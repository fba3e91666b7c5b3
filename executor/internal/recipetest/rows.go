package recipetest

// columnSums adds up rows to a gradient.
func columnSums(run *kernelRun) {
	x, d := run.operand("x"), run.operand("d")
	run.begin("d")
	d.each(func(_, j int64, at *float64) {
		for i := range x.Rows {
			*at += *x.At(i, j)
		}
	})
}

func partialSums(run *kernelRun) {
	x, sums := run.operand("x"), run.operand("sums")
	sums.each(func(_, _ int64, at *float64) { *at = 0 })
	x.each(func(i, j int64, at *float64) { *sums.At(i%sums.Rows, j) += *at })
}

func copyKernel(run *kernelRun) {
	y := run.operand("y")
	run.operand("x").each(func(i, j int64, at *float64) { *y.At(i, j) = *at })
}

func firstRows(run *kernelRun) {
	x, seq := run.operand("x"), run.size("seq")
	run.operand("y").each(func(i, j int64, at *float64) { *at = *x.At(i*seq, j) })
}

func lastRows(run *kernelRun) {
	x, seq := run.operand("x"), run.size("seq")
	run.operand("y").each(func(i, j int64, at *float64) { *at = *x.At(i*seq+seq-1, j) })
}
