package estimate

import "github.com/devmap-dev/devmap/costmodel"

// accelerate is Hugging Face Accelerate's naive model parallelism
// (accelerate/hooks.py, AlignDevicesHook): arguments are copied to each
// module's device, outputs to the input's (io_same_device).
func accelerate() engine {
	return engine{rotaryCopies: true, compute: asWeights, finish: func(e *estimator, t *costmodel.Table) {
		t.OutputBytes = e.outputs() + e.pixels()
	}}
}
