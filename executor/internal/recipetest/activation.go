package recipetest

import "math"

var activations = map[string]func(x float64) float64{
	"silu": func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	"gelu": func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	"gelu_tanh": func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	},
	"tanh": math.Tanh,
	"relu": func(x float64) float64 { return max(x, 0) },
}

// activation returns the value of a function and its derivative.
func (run *kernelRun) activation(x float64) (value, slope float64) {
	const h = 1e-5
	f := activations[run.dims["activation"]]
	if math.Abs(x) < h && run.dims["activation"] == "relu" {
		return f(x), math.Ceil(f(x)) // PyTorch's is 0 at 0
	}
	return f(x), (f(x+h) - f(x-h)) / (2 * h)
}

func activateKernel(run *kernelRun) {
	y := run.operand("y")
	run.operand("x").each(func(i, j int64, at *float64) { *y.At(i, j), _ = run.activation(*at) })
}

func activateBackward(run *kernelRun) {
	dx, dy := run.operand("dx"), run.operand("dy")
	run.operand("x").each(func(i, j int64, at *float64) {
		_, slope := run.activation(*at)
		*dx.At(i, j) = *dy.At(i, j) * slope
	})
}

func gateKernel(run *kernelRun) {
	gate, up := run.operand("gate"), run.operand("up")
	run.operand("y").each(func(i, j int64, at *float64) {
		value, _ := run.activation(*gate.At(i, j))
		*at = value * *up.At(i, j)
	})
}

func gateBackward(run *kernelRun) {
	gate, up, dy, dgate, dup := run.operand("gate"), run.operand("up"), run.operand("dy"), run.operand("dgate"), run.operand("dup")
	for i := range dy.Rows {
		for j := range dy.Columns {
			value, slope := run.activation(*gate.At(i, j))
			gradient := *dy.At(i, j)
			*dgate.At(i, j), *dup.At(i, j) = gradient**up.At(i, j)*slope, gradient*value
		}
	}
}
