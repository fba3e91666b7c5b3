package recipe

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// weight is a parameter of the unit and what training has of it: indexes of
// tensors, -1 where there is none.
type weight struct {
	layer    int
	name     string // below the layer's
	value    int
	gradient int
	master   int
	moments  [2]int
	used     bool
}

// layout gives the unit's parameters their places: weights, gradients, masters
// and moments each in a block of their own, in module order. A tied parameter
// lies in its owner's block, and has a gradient of this use.
func (writer *writer) layout() error {
	unit := &writer.graph.Units[writer.unit]
	for i := unit.First; i < unit.End; i++ {
		writer.firsts = append(writer.firsts, len(writer.weights))
		layer := &writer.graph.Layers[i]
		if layer.Declared != nil && layer.Declared.ParamsBytes > 0 && len(layer.Params) == 0 {
			return unrunnable(layer, "its %v of parameters are declared, and nothing names them; params does, with shape and dtype", costmodel.Bytes(layer.Declared.ParamsBytes))
		}
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if !tensor.DType.Float() {
				return unrunnable(layer, "parameter %q is stored as %v, and its products take weights in bf16 or fp32", tensor.Name, tensor.DType)
			}
			writer.parameter(i, tensor)
		}
	}
	writer.firsts = append(writer.firsts, len(writer.weights))
	return nil
}

// parameter adds one.
func (writer *writer) parameter(index int, tensor *modelgraph.Tensor) {
	layer := &writer.graph.Layers[index]
	full := modelgraph.FullName(layer.Name, tensor.Name)
	name := strings.TrimPrefix(strings.TrimPrefix(full, writer.graph.Units[writer.unit].Name), ".")
	if name == "" {
		name = "self" // the unit is a bare parameter
	}
	rows, columns := matrix(tensor.Shape)
	value := Tensor{Name: name, Class: classWeight, DType: writer.dtype, Rows: rows, Columns: columns, Tie: -1}
	own := weight{layer: index, name: tensor.Name, gradient: -1, master: -1, moments: [2]int{-1, -1}}
	trained := writer.train && !writer.silent
	wide := value
	wide.DType = writer.gradients
	if tensor.Owner == "" {
		own.value = writer.place(&writer.regions.Weights, value)
	} else {
		value.Tie = len(writer.regions.Tied)
		own.value = writer.add(value)
		writer.regions.Tied = append(writer.regions.Tied, writer.tie(tensor.Owner, &value, &wide, trained))
	}
	if trained {
		wide.Name, wide.Class = name+".gradient", classGradient
		own.gradient = writer.place(&writer.regions.Grads, wide)
		if tensor.Owner == "" {
			writer.regions.Tensors++
			writer.states(&own, name, wide)
		}
	}
	writer.weights = append(writer.weights, own)
}

// states are what the optimizer has of a parameter.
func (writer *writer) states(own *weight, name string, wide Tensor) {
	if writer.masters {
		wide.Name, wide.Class = name+".master", classMaster
		own.master = writer.place(&writer.regions.Master, wide)
	}
	if writer.workload.Optimizer == costmodel.AdamW {
		for i, moment := range []string{".mean", ".square"} {
			wide.Name, wide.Class = name+moment, classState
			own.moments[i] = writer.place(&writer.regions.State, wide)
		}
	}
}

// tie is the use of a parameter that another unit owns.
func (writer *writer) tie(owner string, value, wide *Tensor, trained bool) costmodel.Tie {
	tie := costmodel.Tie{Owner: writer.owner(owner), Tensor: owner, Weights: value.Bytes()}
	if !trained {
		return tie
	}
	tie.Grads = wide.Bytes()
	if writer.masters {
		tie.Master = wide.Bytes()
	}
	if writer.workload.Optimizer == costmodel.AdamW {
		tie.State = 2 * wide.Bytes()
	}
	return tie
}

// matrix is a shape as rows and columns: the last dimension is the columns.
func matrix(shape []int64) (rows, columns int64) {
	rows, columns = 1, 1
	for i, dim := range shape {
		if i == len(shape)-1 {
			columns = dim
		} else {
			rows *= dim
		}
	}
	return rows, columns
}

// find is the parameter of a layer that has one of these names and this shape,
// nil where there is none.
func (writer *writer) find(layer int, names ...string) *weight {
	at := layer - writer.graph.Units[writer.unit].First
	for i := writer.firsts[at]; i < writer.firsts[at+1]; i++ {
		if own := &writer.weights[i]; slices.Contains(names, own.name) {
			own.used = true
			return own
		}
	}
	return nil
}

// need is find for a parameter that there must be, rows × columns.
func (writer *writer) need(layer int, rows, columns int64, names ...string) (*weight, error) {
	if rows < 1 || columns < 1 {
		return nil, unrunnable(&writer.graph.Layers[layer], "parameter %s is %d × %d: a dimension of its op is 0", strings.Join(names, " or "), rows, columns)
	}
	own := writer.find(layer, names...)
	if own == nil {
		return nil, unrunnable(&writer.graph.Layers[layer], "it has no parameter %s", strings.Join(names, " or "))
	}
	if tensor := &writer.code.Tensors[own.value]; tensor.Rows != rows || tensor.Columns != columns {
		return nil, unrunnable(&writer.graph.Layers[layer], "parameter %q is %d × %d, and its dimensions ask for %d × %d", own.name, tensor.Rows, tensor.Columns, rows, columns)
	}
	return own, nil
}

// unread refuses parameters that no kernel reads.
func (writer *writer) unread() error {
	for i := range writer.weights {
		own := &writer.weights[i]
		layer := &writer.graph.Layers[own.layer]
		if !own.used && !writer.quiet(own.layer) {
			return unrunnable(layer, "it has no kernel that reads parameter %q", own.name)
		}
	}
	return nil
}
