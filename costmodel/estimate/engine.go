package estimate

import "github.com/devmap-dev/devmap/costmodel"

// engine is what a runtime does with tensors that the ops do not say: one
// file a runtime.
type engine struct {
	// rotaryCopies: every block gets a copy of the rotary's cosines and sines
	// of its own; else all share those that the rotary made.
	rotaryCopies bool
	// compute is the precision that ops see, of that of the weights.
	compute func(costmodel.Precision) costmodel.Precision
	// weights is the precision of the weights that the ops read, where the
	// engine keeps others for the optimizer; nil: the weights' own.
	weights func(costmodel.Precision) costmodel.Precision
	// cut: parameters, gradients and states are cut over ShardDegree GPUs, and
	// gradients are reduced in every micro-batch.
	cut bool
	// views: gradients are views of buffers that stay between steps.
	views bool
	// finish sets what the engine holds besides the units.
	finish func(*estimator, *costmodel.Table)
}

func engineOf(w *costmodel.Workload) engine {
	switch w.Runtime {
	case costmodel.Torch:
		return torch(w)
	case costmodel.Lightning:
		return lightning(w)
	case costmodel.DeepSpeed:
		return deepspeed(w)
	default:
		return accelerate()
	}
}

// asWeights: ops run in the precision of the weights.
func asWeights(p costmodel.Precision) costmodel.Precision { return p }
