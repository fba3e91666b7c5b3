package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// optimizer is the state that a layer's parameters have between steps and
// the temporaries of one step, in bytes.
func (e *estimator) optimizer(l *modelgraph.Layer) (state, transient int64) {
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return e.stateOf(nil, l.Declared.ParamsBytes)
	}
	for i := range l.Params {
		t := &l.Params[i]
		if t.Tied() || !t.DType.Float() {
			continue // counted at its owner; quantised weights are not trained
		}
		s, tr := e.stateOf(t, t.Numel()*e.w.Precision.WeightBytes())
		state += s
		transient += tr
	}
	return state, transient
}

// stateOf is one tensor's. size is that of the weights, whose type the states
// have (torch.optim: zeros_like(param)).
func (e *estimator) stateOf(t *modelgraph.Tensor, size int64) (state, transient int64) {
	numel := size / e.w.Precision.WeightBytes()
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
		return adafactor(t, numel), 4 * numel // the fp32 update
	case costmodel.Muon:
		if t != nil && len(t.Shape) == 2 {
			return size, 3 * 2 * numel // Newton–Schulz: bf16 copies
		}
		return 2 * size, 0
	default: // AdamW
		return 2 * size, 0
	}
}

// adafactor keeps a row and a column of second moments in fp32 for a matrix,
// all of them otherwise (Shazeer and Stern 2018, §3).
func adafactor(t *modelgraph.Tensor, numel int64) int64 {
	if t == nil || len(t.Shape) < 2 {
		return 4 * numel
	}
	cols := max(1, t.Shape[len(t.Shape)-1])
	rows := max(1, t.Shape[len(t.Shape)-2])
	outer := numel / (rows * cols)
	return 4 * outer * (rows + cols)
}
