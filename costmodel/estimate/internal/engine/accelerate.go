package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/modelgraph"
)

// accelerate is Hugging Face Accelerate's naive model parallelism (accelerate/hooks.py,
// AlignDevicesHook). It copies arguments to each module's device, outputs to the input's
// (io_same_device).
type accelerate struct{ base }

func (accelerate) Rules(workload *costmodel.Workload) layers.Rules {
	rules := base{}.Rules(workload)
	rules.RotaryCopies, rules.InOrder, rules.Padding = true, true, true
	if workload.OneGPU {
		rules.Rests = followWhole
	}
	return rules
}

func (accelerate) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputBytes = outputs(model)
	if part, returned, loss := layers.TapePart(model, table.Units); part != nil {
		table.OutputBytes, table.LossBytes, table.Part = returned, loss, part
		return
	}
	if model.Workload.OneGPU {
		table.Part = layers.InOrder(model, table.Units)
	}
	if biased, again := layers.Biased(model, table.Units); biased {
		table.BiasWorkspace = 1 << 20
		if again { // autograd's thread runs forwards
			table.BiasWorkspace = 2 << 20
		}
	}
	if model.Workload.Mode != costmodel.Load {
		followMap(model, table)
	}
}

// outputs is the size of the model's outputs, those that no layer reads.
func outputs(model *layers.Model) int64 {
	read := make([]bool, len(model.Layers))
	for i := range model.Layers {
		for _, j := range model.Layers[i].InputLayers {
			read[j] = true
		}
	}
	var total int64
	for i := range model.Layers {
		layer := &model.Layers[i]
		linear, _ := layer.Op.(modelgraph.Linear)
		if _, rotary := layer.Op.(modelgraph.Rotary); linear.Returned || !read[i] && !rotary {
			total += layer.Cost.Output
		}
	}
	return total
}
