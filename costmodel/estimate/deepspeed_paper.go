package estimate

// ZeroPaper is bytes of model states a GPU by the formulas of Rajbhandari et
// al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"
// (SC 2020, §3.1 and §5): 2Ψ of 16-bit parameters, 2Ψ of 16-bit gradients and
// KΨ of optimizer states, K = 12 for Adam in mixed precision (fp32 parameters,
// momentum and variance). Stage 1 cuts the states over d GPUs, stage 2 the
// gradients also, stage 3 the parameters also.
func ZeroPaper(stage int, params float64, d int64) float64 {
	const k = 12
	whole, cut := 4., float64(k)
	if stage >= 2 {
		whole, cut = 2, k+2
	}
	if stage >= 3 {
		whole, cut = 0, k+4
	}
	return whole*params + cut*params/float64(d)
}
