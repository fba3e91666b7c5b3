package timeline

import "github.com/devmap-dev/devmap/costmodel"

// gathered is the engine of one rank whose parameters are gathered module by
// module: DeepSpeed's ZeRO 3. The step is that of a GPU with the whole model;
// what is gathered stands beside each layer.
func gathered(table *costmodel.Table, held unitList, resident Resident) Producer {
	return func(emit func(Event)) {
		DeviceMap(table.Workload.Mode, held, resident)(beside(held, emit))
	}
}

// beside adds to the moments of each layer what is gathered while it runs.
func beside(held unitList, emit func(Event)) func(Event) {
	layers := make(map[string]*costmodel.LayerMemory)
	var loss *costmodel.LayerMemory
	for _, unit := range held {
		for i := range unit.Layers {
			step := &unit.Layers[i]
			layers[step.Layer] = step
			if step.Loss {
				loss = step
			}
		}
	}
	var done *costmodel.LayerMemory // its backward's moment has passed
	return func(event Event) {
		if event.What == "" {
			emit(event)
			if done != nil && done.Reducing > 0 {
				emit(Event{Over: buffers(done.Reducing + done.GatheredBackward), What: "reduction after ", Layer: done.Layer})
			}
			done = nil
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
