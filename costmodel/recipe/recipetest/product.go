package recipetest

// gemm may write where it reads add: all is made before.
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
	made := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := 0.
			for l := range k {
				sum += a.Values[a.First+i*aRow+l*aNext] * b.Values[b.First+j*bColumn+l*bNext]
			}
			if run.given("bias") {
				sum += *run.operand("bias").At(0, j)
			}
			if run.given("add") {
				sum += *run.operand("add").At(i, j)
			}
			made[i*n+j] = sum
		}
	}
	run.begin("d")
	d.each(func(i, j int64, at *float64) { *at += made[i*n+j] })
}
