package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// relations are a graph's running layers, their inputs, and the owners of parameters.
type relations struct {
	graph    *modelgraph.Graph
	workload *costmodel.Workload

	owners map[string]int // units by the full names of parameters that they own
	read   []bool         // by layer: another one reads it
	tied   map[string]bool
}

// quiet reports layers that run nothing: rotary positions are computed if they
// are used, and a tower without images is not called.
func (rel *relations) quiet(index int) bool {
	layer := &rel.graph.Layers[index]
	if layer.Stream.Kind == modelgraph.Image && rel.workload.Images == 0 {
		return true
	}
	switch layer.Op.(type) {
	case modelgraph.Rotary:
		return true
	case modelgraph.Opaque, modelgraph.Parameter:
		return rel.storage(index)
	}
	return false
}

// inputs are the running layers that a layer reads.
func (rel *relations) inputs(index int) []int {
	var ins []int
	for _, j := range rel.graph.Layers[index].InputLayers {
		if !rel.quiet(j) {
			ins = append(ins, j)
		}
	}
	return ins
}

// storage reports a layer without an operation whose parameters are all tied to other layers', and
// which nothing reads (BERT's prediction bias).
func (rel *relations) storage(index int) bool {
	layer := &rel.graph.Layers[index]
	rel.note()
	for j := range layer.Params {
		if !rel.tied[modelgraph.FullName(layer.Name, layer.Params[j].Name)] {
			return false
		}
	}
	return !rel.read[index]
}

// note finds, once, which layers are read and which parameters are tied.
func (rel *relations) note() {
	if rel.read != nil {
		return
	}
	rel.read, rel.tied = make([]bool, len(rel.graph.Layers)), make(map[string]bool)
	for i := range rel.graph.Layers {
		for _, j := range rel.graph.Layers[i].InputLayers {
			rel.read[j] = true
		}
	}
	for _, names := range rel.graph.Ties {
		for _, name := range names {
			rel.tied[name] = len(names) > 1
		}
	}
}

// owner is the unit that owns a parameter of this full name.
func (rel *relations) owner(full string) int {
	if rel.owners == nil {
		rel.owners = make(map[string]int)
		for i := range rel.graph.Layers {
			layer := &rel.graph.Layers[i]
			for _, tensor := range layer.Owned() {
				rel.owners[modelgraph.FullName(layer.Name, tensor.Name)] = layer.UnitIndex
			}
		}
	}
	return rel.owners[full]
}
