package strategy

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// balanced is the map of device_map="auto" and "balanced" (Accelerate 1.15: utils/modeling.py). The
// function get_balanced_memory gives the limits of the GPUs, infer_auto_device_map the map. free
// are the free bytes of each GPU. The CPU takes the rest; its memory is assumed to be enough.
func balanced(graph *modelgraph.Graph, sizes *weightSizes, free []int64) devicemap.Map {
	root := modulesOf(graph, sizes)
	filling := &autoMap{ties: graph.Ties, limits: root.limits(free), used: make([]int64, len(free)), places: map[string]int{}}
	filling.todo = root.parts()
	filling.todo = append(filling.todo, root.buffers...)
	filling.largest.find(filling.todo)
	for len(filling.todo) > 0 {
		filling.next()
	}
	return filling.units(graph)
}

// module is a module or a tensor of the model, by its full name.
type module struct {
	name  string
	bytes int64
	// whole: its class is in _no_split_modules.
	whole    bool
	children []*module
	// tensors are its own parameters, buffers its own buffers: they have no children.
	tensors, buffers []*module
	unit             *modelgraph.Unit // that the module is; nil if it is none
}

// isLeaf reports a tensor, or a module without children or that is not split.
func (m *module) isLeaf() bool { return len(m.children) == 0 || m.whole }

// parts replace a split module: its parameters and children. Its own buffers get no device.
func (m *module) parts() []*module { return slices.Concat(m.tensors, m.children) }

// weightSizes computes the loaded size of tensors.
type weightSizes struct {
	workload *costmodel.Workload
}

// of is the size of a tensor of a layer, in bytes.
func (sizes *weightSizes) of(layer *modelgraph.Layer, tensor *modelgraph.Tensor, buffer bool) int64 {
	workload := sizes.workload
	if buffer || workload == nil || !tensor.DType.Float() {
		return tensor.Bytes
	}
	if workload.Quantize != "" && len(tensor.Shape) == 2 && linear(layer) {
		if workload.Quantize == nf4 {
			return tensor.Numel / 2
		}
		return tensor.Numel
	}
	switch workload.Precision {
	case costmodel.BF16True, costmodel.FP16True:
		return 2 * tensor.Numel
	case costmodel.BF16Mixed, costmodel.FP16Mixed, costmodel.FP32True:
		return 4 * tensor.Numel
	}
	return tensor.Bytes
}

// linear reports a layer of linear modules that bitsandbytes quantises: not the output head.
func linear(layer *modelgraph.Layer) bool {
	switch layer.Op.(type) {
	case modelgraph.Attention, modelgraph.MLP, modelgraph.MoE, modelgraph.Linear:
		return true
	}
	return false
}

// modulesOf is the tree of the model's modules in order. A tied parameter counts in its owner.
func modulesOf(graph *modelgraph.Graph, sizes *weightSizes) *module {
	root := &module{}
	named := map[string]*module{"": root}
	var at func(path string) *module
	at = func(path string) *module {
		if m := named[path]; m != nil {
			return m
		}
		m := &module{name: path}
		named[path] = m
		parent := at(path[:max(0, strings.LastIndexByte(path, '.'))])
		parent.children = append(parent.children, m)
		return m
	}
	add := func(layer *modelgraph.Layer, tensor *modelgraph.Tensor, buffer bool) {
		full := modelgraph.FullName(layer.Name, tensor.Name)
		holder := at(full[:max(0, strings.LastIndexByte(full, '.'))])
		leaf := &module{name: full}
		if tensor.Owner == "" {
			leaf.bytes = sizes.of(layer, tensor, buffer)
		}
		if buffer {
			holder.buffers = append(holder.buffers, leaf)
		} else {
			holder.tensors = append(holder.tensors, leaf)
		}
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for j := range layer.Params {
			add(layer, &layer.Params[j], false)
		}
		for j := range layer.Buffers {
			add(layer, &layer.Buffers[j], true)
		}
	}
	for i := range graph.Units {
		unit := &graph.Units[i]
		if m := named[unit.Name]; m != nil && len(unit.Keys) == 1 && unit.Keys[0] == unit.Name {
			m.whole, m.unit = true, unit
		}
	}
	root.sum()
	return root
}

func (m *module) sum() int64 {
	for _, parts := range [][]*module{m.tensors, m.buffers, m.children} {
		for _, part := range parts {
			m.bytes += part.sum()
		}
	}
	return m.bytes
}

// limits is get_balanced_memory: an equal part of the model and a margin for each GPU. The last one
// keeps its whole free memory.
func (m *module) limits(free []int64) []int64 {
	limits := slices.Clone(free)
	var leaves, sum int64
	first := map[string]int64{} // of each class that is not split, the size of its first module
	var walk func(part *module)
	walk = func(part *module) {
		if part.unit != nil && len(part.children) > 0 {
			if _, ok := first[class(part.unit)]; !ok {
				first[class(part.unit)] = part.bytes
			}
		}
		if len(part.children) == 0 && part != m {
			leaves, sum = leaves+1, sum+part.bytes
		}
		for _, child := range part.children {
			walk(child)
		}
	}
	walk(m)
	margin := sum / max(leaves, 1)
	for _, size := range first {
		margin = max(margin, size)
	}
	each := m.bytes/int64(len(free)) + margin*5/4
	for i := range limits[:len(limits)-1] {
		limits[i] = min(limits[i], each)
	}
	return limits
}

// class is a block's class, by its kind. T5's encoder and decoder are lists named block, of one
// class (modeling_t5.py, T5Block).
func class(unit *modelgraph.Unit) string {
	if strings.Contains(unit.Name, ".block.") {
		return "block"
	}
	return unit.Kind
}
