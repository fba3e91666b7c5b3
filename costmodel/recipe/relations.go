package recipe

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// quiet reports layers that run nothing: rotary positions are worked out
// where they are used, and a tower without images is not called.
func (model *model) quiet(index int) bool {
	layer := &model.graph.Layers[index]
	if layer.Stream.Kind == modelgraph.Image && model.workload.Images == 0 {
		return true
	}
	switch layer.Op.(type) {
	case modelgraph.Rotary:
		return true
	case modelgraph.Opaque, modelgraph.Parameter:
		return model.storage(index)
	}
	return false
}

// inputs are the layers that a layer reads, without those that do not run.
func (model *model) inputs(index int) []int {
	var ins []int
	for _, j := range model.graph.Layers[index].InputLayers() {
		if !model.quiet(j) {
			ins = append(ins, j)
		}
	}
	return ins
}

// storage reports a layer without an operation that holds what others run:
// each of its parameters is tied to one of theirs, and nothing reads it (BERT's
// prediction bias).
func (model *model) storage(index int) bool {
	layer := &model.graph.Layers[index]
	model.relations()
	for j := range layer.Params {
		if !model.tied[modelgraph.FullName(layer.Name, layer.Params[j].Name)] {
			return false
		}
	}
	return !model.read[index]
}

// relations notes, once, which layers are read and which parameters are tied.
func (model *model) relations() {
	if model.read != nil {
		return
	}
	model.read, model.tied = make([]bool, len(model.graph.Layers)), make(map[string]bool)
	for i := range model.graph.Layers {
		for _, j := range model.graph.Layers[i].InputLayers() {
			model.read[j] = true
		}
	}
	for _, names := range model.graph.Ties {
		for _, name := range names {
			model.tied[name] = len(names) > 1
		}
	}
}

// owner is the unit that owns a parameter of this full name.
func (model *model) owner(full string) int {
	if model.owners == nil {
		model.owners = make(map[string]int)
		for i := range model.graph.Layers {
			layer := &model.graph.Layers[i]
			for _, tensor := range layer.Owned() {
				model.owners[modelgraph.FullName(layer.Name, tensor.Name)] = layer.UnitIndex()
			}
		}
	}
	return model.owners[full]
}
