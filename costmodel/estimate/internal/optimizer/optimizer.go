// Package optimizer is what an optimizer keeps of a tensor between steps, and
// what one of its steps takes: numbers only.
package optimizer

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Rule is an optimizer as a run has it.
type Rule struct {
	Kind string
	// EMA: a moving average of the weights is kept.
	EMA bool
	// Average is the size of an element of that average: a copy of the weights
	// in their type (torch.optim.swa_utils.AveragedModel deep-copies the
	// module; OpenPI's ema_params are a copy of params). 0: that of the weights
	// that the optimizer updates.
	Average int64
}

// State is what the optimizer keeps of one tensor, of elements of so many bytes
// each, with the moving average; and the temporaries of a step. A nil shape is
// a tensor of unknown dimensions.
func (rule *Rule) State(shape []int64, numel, each int64) (state, transient int64) {
	state, transient = rule.own(shape, numel, each)
	if rule.EMA {
		state += rule.Averaged(numel, each)
	}
	return state, transient
}

// Averaged is the moving average of so many elements of each bytes.
func (rule *Rule) Averaged(numel, each int64) int64 {
	if rule.Average > 0 {
		each = rule.Average
	}
	return numel * each
}

// own is what the optimizer itself keeps, in the type of the weights
// (torch.optim: zeros_like(param)).
func (rule *Rule) own(shape []int64, numel, each int64) (state, transient int64) {
	size := numel * each
	switch rule.Kind {
	case value.AdamWForeach:
		return 2 * size, size // _foreach_sqrt's list
	case value.AdamW8bit:
		if numel < 4096 { // bitsandbytes: min_8bit_size
			return 8 * numel, 0
		}
		return 2 * (numel + 4*((numel+255)/256)), 0 // fp32 absmax per 256
	case costmodel.SGD:
		return 0, 0
	case value.SGDMomentum:
		return size, 0
	case value.Adafactor:
		return adafactor(shape, numel), 4 * numel // the fp32 update
	case value.Muon:
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

// Traffic is the bytes that a step reads and writes for an element of each
// bytes: the gradient read, the weight and each state read and written.
// DeepSpeed's 16-bit weights are written from the fp32 ones (stage_1_and_2.py
// step).
func (rule *Rule) Traffic(each int64) float64 {
	weight := float64(each)
	state := 2 * weight // AdamW
	switch rule.Kind {
	case value.AdamW8bit:
		state = 2
	case costmodel.SGD:
		state = 0
	case value.SGDMomentum, value.Muon:
		state = weight
	case value.Adafactor:
		state = 4 // the update itself, made and read
	case costmodel.AdamW, value.AdamWForeach:
	}
	if rule.EMA {
		state += weight
	}
	return weight + 2*weight + 2*state
}
