package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// optimizer is the state that a layer's parameters have between steps and
// the temporaries of one step, in bytes.
func (e *estimator) optimizer(l *modelgraph.Layer) (state, transient int64) {
	each := e.w.Precision.WeightBytes()
	if e.frozen() {
		return e.adapterStates(l)
	}
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return e.stateOf(nil, l.Declared.ParamsBytes/each, each)
	}
	for i := range l.Params {
		t := &l.Params[i]
		if t.Tied() || !t.DType.Float() {
			continue // counted at its owner; quantised weights are not trained
		}
		s, tr := e.stateOf(t.Shape, t.Numel(), each)
		state += s
		transient += tr
	}
	return state, transient
}

// stateOf is one tensor's, of weights of so many bytes each, with its moving
// average.
func (e *estimator) stateOf(shape []int64, numel, each int64) (state, transient int64) {
	state, transient = e.rule(shape, numel, each)
	if e.w.EMA {
		state += numel * e.averaged(each)
	}
	return state, transient
}

// averaged is an element of the moving average: a copy of the weights in their
// type (torch.optim.swa_utils.AveragedModel deep-copies the module; OpenPI's
// ema_params are a copy of params).
func (e *estimator) averaged(each int64) int64 {
	if e.engine.weights != nil {
		return e.engine.weights(e.w.Precision).WeightBytes()
	}
	return each
}

// rule is what the optimizer keeps of a tensor, in the type of the weights
// (torch.optim: zeros_like(param)).
func (e *estimator) rule(shape []int64, numel, each int64) (state, transient int64) {
	size := numel * each
	switch e.w.Optimizer {
	case costmodel.AdamWForeach:
		return 2 * size, size // _foreach_sqrt's list
	case costmodel.AdamW8bit:
		if numel < 4096 { // bitsandbytes: min_8bit_size
			return 8 * numel, 0
		}
		return 2 * (numel + 4*((numel+255)/256)), 0 // fp32 absmax per 256
	case costmodel.SGD:
		return 0, 0
	case costmodel.SGDMomentum:
		return size, 0
	case costmodel.Adafactor:
		return adafactor(shape, numel), 4 * numel // the fp32 update
	case costmodel.Muon:
		if len(shape) == 2 {
			return size, 3 * 2 * numel // Newton–Schulz: bf16 copies
		}
		return 2 * size, 0
	default: // AdamW
		return 2 * size, 0
	}
}

// adafactor keeps a row and a column of second moments in fp32 for a matrix,
// all of them otherwise (Shazeer and Stern 2018, §3).
func adafactor(shape []int64, numel int64) int64 {
	if len(shape) < 2 {
		return 4 * numel
	}
	cols := max(1, shape[len(shape)-1])
	rows := max(1, shape[len(shape)-2])
	outer := numel / (rows * cols)
	return 4 * outer * (rows + cols)
}
