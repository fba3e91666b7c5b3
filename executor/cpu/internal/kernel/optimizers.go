package kernel

import "math"

// adamw is torch.optim.AdamW as adamw.py: _single_tensor_adamw has it, number
// by number: constants are worked out in float64, tensors in fp32.
func adamw(call *Call) error {
	settings := call.Optimizer
	if settings == nil {
		return call.update(nil)
	}
	correction1 := 1 - math.Pow(settings.Beta1, float64(call.Step))
	correction2 := math.Sqrt(1 - math.Pow(settings.Beta2, float64(call.Step)))
	kept, rate, root := float32(1-settings.Rate*settings.Decay), float32(settings.Rate/correction1), float32(correction2)
	weight1, beta2, weight2 := float32(1-settings.Beta1), float32(settings.Beta2), float32(1-settings.Beta2)
	epsilon := float32(settings.Epsilon)
	return call.update(func(values, gradients []float32, states [][]float32) {
		means, squares := states[0], states[1]
		for i, gradient := range gradients {
			value := values[i] * kept
			means[i] += weight1 * (gradient - means[i])
			squares[i] = squares[i]*beta2 + weight2*gradient*gradient
			divisor := float32(math.Sqrt(float64(squares[i])))/root + epsilon
			values[i] = value - rate*(means[i]/divisor)
		}
	}, "mean", "square")
}

// sgd is torch.optim.SGD without momentum: decay is part of the gradient.
func sgd(call *Call) error {
	settings := call.Optimizer
	if settings == nil {
		return call.update(nil)
	}
	rate, decay := float32(settings.Rate), float32(settings.Decay)
	return call.update(func(values, gradients []float32, _ [][]float32) {
		for i, gradient := range gradients {
			values[i] -= rate * (gradient + decay*values[i])
		}
	})
}
