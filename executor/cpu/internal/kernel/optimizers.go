package kernel

import "math"

// adamw computes the same bits as torch.optim.AdamW (adamw.py: _single_tensor_adamw). Constants are
// in float64, tensors in fp32. Sums with a product are rounded once if ATen's vectors do so: in
// lerp_ and addcmul_, but not in addcdiv_.
func adamw(call *Call) error {
	settings := call.Optimizer
	if settings == nil {
		return call.update(nil)
	}
	correction1 := 1 - math.Pow(settings.Beta1, float64(call.Step))
	correction2 := math.Sqrt(1 - math.Pow(settings.Beta2, float64(call.Step)))
	decay, rate, root := float32(1-settings.Rate*settings.Decay), float32(settings.Rate/correction1), float32(correction2)
	weight1, beta2, weight2 := float32(1-settings.Beta1), float32(settings.Beta2), float32(1-settings.Beta2)
	epsilon := float32(settings.Epsilon)
	return call.update(func(values, gradients []float32, states [][]float32) {
		means, squares := states[0], states[1]
		for i, gradient := range gradients {
			value := values[i] * decay
			means[i] = fused(weight1, gradient-means[i], means[i])
			squares[i] = fused(weight2*gradient, gradient, squares[i]*beta2)
			divisor := float32(math.Sqrt(float64(squares[i])))/root + epsilon
			values[i] = value - rate*means[i]/divisor
		}
	}, "mean", "square")
}

// sgd is torch.optim.SGD without momentum: decay is added to the gradient.
func sgd(call *Call) error {
	settings := call.Optimizer
	if settings == nil {
		return call.update(nil)
	}
	rate, decay := float32(settings.Rate), float32(settings.Decay)
	return call.update(func(values, gradients []float32, _ [][]float32) {
		for i, gradient := range gradients {
			values[i] = fused(-rate, fused(decay, values[i], gradient), values[i])
		}
	})
}

// fused is a·b + c rounded once: a product of two fp32 is exact in float64.
func fused(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }
