package recipetest

import "math"

// gradient returns an element of a gradient: the sum over the uses of a tied weight.
func (run *kernelRun) gradient(role string, i, j int64) float64 {
	at := run.operands[role]
	if at >= len(run.Uses) || run.Uses[at] == nil {
		return *run.operand(role).At(i, j)
	}
	sum := 0.
	for _, use := range run.Uses[at] {
		sum += *use.At(i, j)
	}
	return sum
}

func squareKernel(run *kernelRun) {
	sum := 0.
	run.operand("x").each(func(i, j int64, _ *float64) { sum += run.gradient("x", i, j) * run.gradient("x", i, j) })
	*run.operand("y").At(0, 0) = sum
}

// clipped returns the factor of gradients (torch.nn.utils.clip_grad_norm_).
func (run *kernelRun) clipped() float64 {
	if run.Optimizer.Clip == 0 {
		return 1
	}
	return min(1, run.Optimizer.Clip/(math.Sqrt(*run.operand("total").At(0, 0))+1e-6))
}

// updated calls f for each value of the master in fp32, or of the weight itself, and stores the
// results in both.
func (run *kernelRun) updated(f func(i, j int64, value float64) float64) {
	master := run.optional("master")
	run.operand("weight").each(func(i, j int64, weight *float64) {
		at := weight
		if master.Values != nil {
			at = master.At(i, j)
		}
		*at = f(i, j, *at)
		*weight = *at
	})
}

// adamwKernel is torch.optim.AdamW (adamw.py: _single_tensor_adamw), decay
// decoupled (Loshchilov and Hutter, arXiv 1711.05101).
func adamwKernel(run *kernelRun) {
	settings, step, scale := &run.Optimizer, float64(run.Step), run.clipped()
	correction1, correction2 := 1-math.Pow(settings.Beta1, step), 1-math.Pow(settings.Beta2, step)
	means, squares := run.operand("mean"), run.operand("square")
	run.updated(func(i, j int64, value float64) float64 {
		gradient, mean, square := scale*run.gradient("gradient", i, j), means.At(i, j), squares.At(i, j)
		*mean = settings.Beta1**mean + (1-settings.Beta1)*gradient
		*square = settings.Beta2**square + (1-settings.Beta2)*gradient*gradient
		value *= 1 - settings.Rate*settings.Decay
		return value - settings.Rate/correction1**mean/(math.Sqrt(*square/correction2)+settings.Epsilon)
	})
}

// sgdKernel is torch.optim.SGD without momentum.
func sgdKernel(run *kernelRun) {
	settings, scale := &run.Optimizer, run.clipped()
	run.updated(func(i, j int64, value float64) float64 {
		return value - settings.Rate*(scale*run.gradient("gradient", i, j)+settings.Decay*value)
	})
}
