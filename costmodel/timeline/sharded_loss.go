package timeline

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// lossOutside is the loss of a model that returns logits, if any. torchtitan's last chunk reduces the
// head's gradient; the group's parameters are freed after it (components/loss.py, ChunkedLossWrapper).
func (step *shardedStep) lossOutside(group *costmodel.Group, unit *costmodel.Unit) {
	head := slices.IndexFunc(unit.Layers, func(layer costmodel.LayerMemory) bool { return layer.LossForward > 0 })
	if head < 0 {
		return
	}
	layer := &unit.Layers[head]
	step.emit(stepEvent{Over: activations(layer.LossForward - layer.Saved), What: "loss forward", Owner: layer.Layer})
	if layer.LossAlive == 0 || group == nil || group.HeadReduce == 0 {
		return
	}
	over := activations(layer.LossAlive - layer.Saved)
	over.Grads, over.CommBuffers = group.HeadReduce, group.HeadReduce // the sum of the chunks, and the input
	step.emit(stepEvent{Change: gradients(group.HeadReduced), Over: over, What: reducing, Layer: group.Name})
	if step.accumulates() {
		step.emit(stepEvent{Change: gradients(-group.HeadReduced), Owner: group.Name})
	}
	step.comm(ofReduction, group.HeadReduce-step.reduce)
	step.comm(group.Name, -group.Gathered)
	step.reduce = group.HeadReduce
}

// lossBeforeRoot is [shardedStep.lossFirst] if the root's hook gathers and the loss is outside.
func (step *shardedStep) lossBeforeRoot(unit *costmodel.Unit) *costmodel.Unit {
	if step.root.RemainsGathered || step.groups[len(step.units)-1] != nil || freedByLoss(unit) == 0 {
		return unit
	}
	return step.lossFirst(unit)
}

// freedByLoss is how much less a unit holds than it saved when the gradient has reached the logits.
func freedByLoss(unit *costmodel.Unit) int64 {
	var sum int64
	for i := range unit.Layers {
		sum += unit.Layers[i].LossFrees
	}
	return sum
}

// freed adds so many times what the loss has freed of a unit.
func (step *shardedStep) freed(unit *costmodel.Unit, times int64) {
	for i := range unit.Layers {
		step.emit(stepEvent{Change: activations(times * unit.Layers[i].LossFrees), Owner: unit.Layers[i].Layer})
	}
}

// firstChunk is the backward of a head's first chunk, the last to run. The logits are gone, and the
// group before is prefetched. The group before other chunks is the head itself
// (_fsdp_param_group.py, _backward_prefetch).
func (step *shardedStep) firstChunk(group *costmodel.Group, unit int, pending []*costmodel.Group) {
	if !finishes(group, unit) || !group.Repeats {
		return
	}
	step.prefetch(pending)
	grads := step.units[unit : unit+1].totals().grads
	over := gradients(2 * grads) // the sum before, the chunk's, and the new sum, which is counted
	over.Activations = step.units[unit].Output
	step.emit(stepEvent{Over: over, What: "backward of ", Layer: group.Name})
}

// lossFirst runs the loss's own backward, before the hook of the head's group. It returns the unit
// without that part.
func (step *shardedStep) lossFirst(unit *costmodel.Unit) *costmodel.Unit {
	i := slices.IndexFunc(unit.Layers, func(layer costmodel.LayerMemory) bool { return layer.LossBackward > 0 })
	if i < 0 {
		return unit
	}
	rest := *unit
	rest.Layers = slices.Clone(unit.Layers)
	layer := &rest.Layers[i]
	step.emit(stepEvent{Over: activations(layer.LossBackward), What: "loss backward", Owner: layer.Layer})
	layer.Loss, layer.Backward, layer.BackwardGrads = false, layer.HeadBackward, layer.HeadGrads
	return &rest
}
