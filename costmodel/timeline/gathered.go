package timeline

import "github.com/devmap-dev/devmap/costmodel"

// gathered is the engine of one rank of DeepSpeed: a step of a GPU with the whole model. Each layer
// adds ZeRO 3's gathered modules, or ZeRO 1 and 2's bucket, and a reduction's temporaries when
// gradients fill the bucket.
func gathered(table *costmodel.Table, owned unitList, resident Resident) producer {
	return func(emit func(stepEvent)) {
		deviceMap(table.Workload.Mode, owned, &resident, withGathered(owned, emit))
	}
}

// withGathered adds ZeRO's gathered bytes to the moments of each layer. A hook of one of the
// layer's gradients starts the reduction, so it counts with all that the layer kept.
func withGathered(owned unitList, emit func(stepEvent)) func(stepEvent) {
	layers, outputs := make(map[string]*costmodel.LayerMemory), make(map[string]int64)
	var loss *costmodel.LayerMemory
	for _, unit := range owned {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			layers[step.Layer], outputs[step.Layer] = step, unit.Output
			if step.Loss {
				loss = step
			}
		}
	}
	var done *costmodel.LayerMemory // its backward's moment has passed
	return func(event stepEvent) {
		if event.What == "" {
			if done != nil && done.Reducing > 0 {
				emit(stepEvent{
					// A tied gradient that waited is in the sum by then.
					Over: costmodel.Memory{Activations: outputs[done.Layer], Grads: min(0, done.Grads), CommBuffers: done.Reducing + done.GatheredBackward},
					What: "reduction in ", Layer: done.Layer,
				})
			}
			done = nil
			emit(event)
			return
		}
		step := layers[event.Layer]
		if step == nil {
			step = loss
		}
		if step != nil {
			event.Over.CommBuffers += gatheredAt(step, event.What)
		}
		if event.What == "backward of " || event.What == "loss backward" {
			done = step
		}
		emit(event)
	}
}

func gatheredAt(step *costmodel.LayerMemory, what string) int64 {
	switch what {
	case "forward of ", "last token in ", "loss forward":
		return step.GatheredForward
	case "recompute of ":
		return step.GatheredAgain
	case "backward of ", "loss backward":
		return step.GatheredBackward
	}
	return 0
}
