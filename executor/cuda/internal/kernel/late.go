//go:build cuda && linux && cgo && amd64

package kernel

import (
	"math"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// past adds the position of all rows in their sequences: the dim past, and where the number of
// tokens lies that were generated since ([Kernels.SetPlace]). Without that dim it adds -1: then
// rows have the positions of their sequences.
func past(call *Call, launch *packed) error {
	prompt := call.size("past", -1)
	if prompt < 0 {
		launch.arguments.Int64(-1).Address(0)
		return nil
	}
	at, err := call.Kernels.place()
	launch.arguments.Int64(prompt).Address(at)
	return err
}

// settings adds the optimizer's settings, computed in float64 as in torch (adamw.py:
// _single_tensor_adamw).
func settings(call *Call, launch *packed) error {
	corrected := call.Kernel.Name == "adamw"
	launch.later(func(step *Step, arguments *driver.Arguments) {
		of, rate := step.Optimizer, step.Optimizer.Rate
		if corrected {
			rate /= 1 - math.Pow(of.Beta1, float64(step.Number))
		}
		root := math.Sqrt(1 - math.Pow(of.Beta2, float64(step.Number)))
		for _, value := range [...]float64{1 - of.Rate*of.Decay, rate, 1 - of.Beta1, of.Beta2, 1 - of.Beta2, root, of.Epsilon, of.Clip, of.Decay} {
			arguments.Float64(value)
		}
	})
	return nil
}
