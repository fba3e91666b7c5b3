package kernel

// attentionDelta is Σ y·dy a row and head: what the gradients of all its scores
// have in common.
func attentionDelta(call *Call) error {
	heads, dim := call.size("heads", 0), call.size("dim", 0)
	out, gradient, delta := call.matrix("y"), call.matrix("dy"), call.matrix("delta")
	values, slopes, sums := make([]float32, heads*dim), make([]float32, heads*dim), make([]float32, heads)
	for i := range call.size("rows", 0) {
		out.Load(i, 0, values)
		gradient.Load(i, 0, slopes)
		for head := range heads {
			sum := 0.
			for j := head * dim; j < (head+1)*dim; j++ {
				sum += float64(values[j]) * float64(slopes[j])
			}
			sums[head] = float32(sum)
		}
		delta.Store(i, 0, sums)
	}
	return nil
}
