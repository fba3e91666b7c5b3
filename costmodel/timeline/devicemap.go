package timeline

import (
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Resident is a device's memory in addition to its units.
type Resident struct {
	Workspace int64 // throughout, if the device runs matrix products
	Output    int64 // from the end of forward on: the model's outputs, copied to the input's device
	Loss      int64 // the caller's loss and its gradient, ahead of backward
	// OutputDropped: Output is gone before backward begins.
	OutputDropped bool
	// Buckets are buffers for communication, throughout.
	Buckets int64
	// Prepared exists in addition to the units while the model is sharded, before a step.
	Prepared int64
	// LastGradients: the last step's gradients remain until backward.
	LastGradients bool
	// Reference is a frozen model that runs once forward has ended.
	Reference value.Reference
	// Generation is the additional memory of generating before a step.
	Generation costmodel.Memory
}

// ResidentOn is the memory of a device, by index, in addition to its units. The input's device gets
// the outputs even if it holds no unit.
func ResidentOn(table *costmodel.Table, index int, device *costmodel.Device, idle bool) Resident {
	var resident Resident
	if table.Workload.Mode == costmodel.Load {
		return resident
	}
	if !idle {
		resident.Workspace = table.Workspaces*device.WorkspaceBytes + table.BiasWorkspace
	}
	resident.Buckets, resident.LastGradients, resident.Reference = table.Buckets, table.LastGradients, table.Reference
	if index == table.InputDevice {
		resident.Output, resident.Loss, resident.OutputDropped = table.OutputBytes, table.LossBytes, table.OutputsDropped
	}
	return resident
}

// DeviceMap is one device under a device map: a step of its units, in time order.
func DeviceMap(mode costmodel.Mode, owned []*costmodel.Unit, resident Resident) Step {
	return Step{parts: []producer{func(emit func(stepEvent)) { deviceMap(mode, unitList(owned), &resident, emit) }}}
}

// deviceMap is the engine of one device under a device map, and of a replica with whole parameters.
func deviceMap(mode costmodel.Mode, owned stretch, resident *Resident, emit func(stepEvent)) {
	start(owned, resident, emit)
	if mode == costmodel.Load {
		return
	}
	if resident.Generation.Total() > 0 {
		emit(stepEvent{Over: resident.Generation, What: "generation"})
	}
	sum := owned.totals()
	var before int64 // gradients that the step before left
	if resident.LastGradients {
		before = sum.grads
		emit(stepEvent{Change: gradients(before), What: "weights", Owner: ofLastStep})
	}
	owned.forward(emit)
	owned.bodyEnd(emit)
	owned.head(emit)
	endForward(resident, before, emit)
	if mode != costmodel.Train {
		return
	}
	runReference(resident, emit)
	owned.backward(emit)
	owned.last(emit)
	emit(stepEvent{Over: activations(sum.step), What: "optimizer step"})
}

// start is the memory alive throughout.
func start(owned stretch, resident *Resident, emit func(stepEvent)) {
	owned.static(emit)
	there := buffers(resident.Buckets)
	if owned.totals().products {
		there.Workspace = resident.Workspace
	}
	emit(stepEvent{Change: costmodel.Memory{Params: resident.Reference.Params, Workspace: resident.Reference.Padding}, Owner: ofReference})
	emit(stepEvent{Change: there, What: "weights", Owner: ofDevice})
}

// endForward hands over the outputs; then the gradients of the step before are
// dropped, and the outputs if the caller does not keep them.
func endForward(resident *Resident, before int64, emit func(stepEvent)) {
	emit(stepEvent{Change: activations(resident.Output), Over: activations(resident.Loss), What: "end of forward", Owner: ofOutputs})
	emit(stepEvent{Change: gradients(-before), Owner: ofLastStep})
	if resident.OutputDropped {
		emit(stepEvent{Change: activations(-resident.Output), Owner: ofOutputs})
	}
}

// runReference is a frozen model's forward; it keeps no activations.
func runReference(resident *Resident, emit func(stepEvent)) {
	if frozen := &resident.Reference; frozen.Forward > 0 {
		emit(stepEvent{Over: costmodel.Memory{Activations: frozen.Forward, CommBuffers: frozen.Gathered}, What: "forward of the reference model"})
	}
}

// The figures of a device map's closed form.
const (
	ofThroughout = iota // with buffers and workspace
	ofSaved
	ofGrads
	ofForward
	ofBackward
	ofLast
	ofStep
	ofComplete // saved, with caches that have grown: less than before if a window drops some
	ofHead
	ofOutput
	ofLoss
	deviceFigures
)

// deviceClosed is a device map's closed form, by LastGradients and OutputDropped. A unit's memory
// until the end of the body has no own figure: the peak of forward counts it.
var deviceClosed = sync.OnceValue(func() *[2][2]closed {
	forms := new([2][2]closed)
	for last := range forms {
		for dropped := range forms[last] {
			resident := Resident{LastGradients: last == 1, OutputDropped: dropped == 1}
			forms[last][dropped] = newClosed(deviceFigures, func(value []int64) producer {
				owned := Summary{
					Static: value[ofThroughout], Saved: value[ofSaved], Grads: value[ofGrads],
					Forward: value[ofForward], Backward: value[ofBackward], LastBackward: value[ofLast],
					StepTransient: value[ofStep], CacheGrowth: value[ofComplete] - value[ofSaved], HeadPeak: value[ofHead],
				}
				resident.Output, resident.Loss = value[ofOutput], value[ofLoss]
				return func(emit func(stepEvent)) { deviceMap(costmodel.Train, &owned, &resident, emit) }
			})
		}
	}
	return forms
})

// Peak is the most that a device with these units holds at once: the fold of its [DeviceMap].
func (summary Summary) Peak(resident Resident) int64 {
	throughout := summary.Static + resident.Buckets
	if summary.Products {
		throughout += resident.Workspace
	}
	form := &deviceClosed()[choice(resident.LastGradients)][choice(resident.OutputDropped)]
	return form.peak([]int64{
		ofThroughout: throughout, ofSaved: summary.Saved, ofGrads: summary.Grads,
		ofForward: summary.Forward, ofBackward: summary.Backward, ofLast: summary.LastBackward, ofStep: summary.StepTransient,
		ofComplete: summary.Saved + summary.CacheGrowth, ofHead: summary.HeadPeak, ofOutput: resident.Output, ofLoss: resident.Loss,
	})
}

// Around returns the memory of a device with only these units around a part of a step: before it,
// at its peak, and afterwards. Parts are "weights", "forward", "head", "end of forward" and in
// training "backward", "last backward" and "optimizer step". lastGradients: the gradients of the
// step before remain until backward.
func (summary Summary) Around(mode costmodel.Mode, lastGradients bool, part string) (before, peak, after int64) {
	var now int64
	deviceMap(mode, &summary, &Resident{LastGradients: lastGradients}, func(event stepEvent) {
		start := now
		now += event.Change.Total()
		if event.What == part {
			before, peak, after = start, now+event.Over.Total(), now
		}
	})
	return before, peak, after
}

func choice(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
