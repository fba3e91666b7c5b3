package recipetest

// gemm may write its result in the place of add: everything is computed before.
func gemm(run *kernelRun) {
	a, b, d := run.operand("a"), run.operand("b"), run.operand("d")
	m, n, k := run.size("m"), run.size("n"), run.size("k")
	// How far apart neighbours along m, n and k lie.
	aRow, aNext, bColumn, bNext := a.Stride, int64(1), int64(1), b.Stride
	switch run.dims["form"] {
	case "nt":
		bColumn, bNext = b.Stride, 1
	case "tn":
		aRow, aNext = 1, a.Stride
	}
	bias, add := run.optional("bias"), run.optional("add")
	made := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum, inA, inB := 0., a.First+i*aRow, b.First+j*bColumn
			for range k {
				sum += a.Values[inA] * b.Values[inB]
				inA, inB = inA+aNext, inB+bNext
			}
			if bias.Values != nil {
				sum += *bias.At(0, j)
			}
			if add.Values != nil {
				sum += *add.At(i, j)
			}
			made[i*n+j] = sum
		}
	}
	run.begin("d")
	d.each(func(i, j int64, at *float64) { *at += made[i*n+j] })
}
