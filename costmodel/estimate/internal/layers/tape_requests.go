package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// Request is a birth of Bytes, or an end. At an end, At is the number of the birth, counted from 0.
type Request struct {
	Bytes int64
	At    int32
	Until Until
}

// Until is when a storage ends.
type Until byte

// A storage that passes by ends in a request. Others stay until the optimizer's step, or until the process ends.
const (
	Passes Until = iota
	Ends         // the request is an end
	Step
	Process
)

// untils are those of what a storage is (modelgraph/internal/learned). Others pass.
var untils = map[byte]Until{0: Ends, 's': Process, 't': Process, 'i': Process, 'g': Step, 'o': Step}

// Requests are the storages of a GPU's step in order, as a table of types has them; nil if it does not.
func Requests(model *Model) []Request {
	step, known := asked(model)
	if !known || !plain(model) || model.Workload.MicroBatches > 1 {
		return nil
	}
	found := model.Layers[0].Learned.Requests(step)
	if found == nil {
		return nil
	}
	factors := factors(model)
	sizes := make([]int64, len(found.Sizes))
	for at := range found.Sizes {
		sizes[at] = sizeOf(&found.Sizes[at], factors)
	}
	out := make([]Request, len(found.Events))
	for i, event := range found.Events {
		out[i] = Request{At: event.At, Until: untils[event.What]}
		if out[i].Until != Ends {
			out[i].Bytes = sizes[event.At]
		}
	}
	return out
}

// Resident is a tensor that is there until the process ends.
type Resident struct {
	Bytes int64
	// States are the optimizer's tensors of its size, Transient the temporaries of a step.
	States, Transient int64
	// Tied: another parameter takes its place once all are made.
	Tied bool
	// Cast is the size in which PEFT makes an adapter first (peft/tuners/tuners_utils.py, cast_adapter_dtype), else 0.
	Cast int64
}

// Residents are the model's parameters in the order in which they are made, and its buffers. Adapters come last.
func Residents(model *Model) (all []Resident) {
	var adapters, buffers []Resident
	for i := range model.Layers {
		layer := &model.Layers[i]
		part := &layer.Whole
		for j := range part.Params {
			tensor := &part.Params[j]
			one := Resident{Bytes: part.Stored(j), Tied: tensor.Owner != ""}
			if each := own(model, tensor, ops.WeightBytes(model.Workload.Precision)); model.Train && !model.Frozen && layer.Runs && trains(tensor) && !tensor.Frozen && !one.Tied && one.Bytes > 0 {
				one.optimized(part, tensor.Shape, tensor.Numel, each)
			}
			all = append(all, one)
		}
		for _, matrix := range part.Matrices() {
			one := Resident{Bytes: model.adapterWeight() * matrix.Numel()}
			one.Cast = ops.WeightBytes(model.Workload.Precision) * matrix.Numel()
			one.optimized(part, matrix.Shape(), matrix.Numel(), model.adapterWeight())
			adapters = append(adapters, one)
		}
		for k := range layer.Buffers {
			buffers = append(buffers, Resident{Bytes: layer.Buffers[k].Bytes})
		}
	}
	return slices.Concat(all, buffers, adapters)
}

// optimized adds the optimizer's tensors.
func (tensor *Resident) optimized(part *Part, shape []int64, numel, each int64) {
	state, transient := part.optimizer().State(shape, numel, each)
	tensor.States, tensor.Transient = state/(numel*each), transient
}
