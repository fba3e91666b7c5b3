package recipe

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// weight is a parameter of the unit with its training tensors' indexes, -1 if none.
type weight struct {
	layer    int
	name     string // below the layer's
	value    int
	gradient int
	master   int
	moments  [2]int
	used     bool
}

// parameters are a unit's weights, and what training has of each.
type parameters struct {
	assembler
	unit    int
	silent  bool // nothing runs of the unit
	weights []weight
	firsts  []int // by layer of the unit: the first of its weights, and the end
}

// layout places the unit's parameters: weights, gradients, masters and moments in a block each, in
// module order. A tied parameter is in its owner's block, and has its own gradient.
func (params *parameters) layout() error {
	unit := &params.graph.Units[params.unit]
	for i := unit.First; i < unit.End; i++ {
		params.firsts = append(params.firsts, len(params.weights))
		layer := &params.graph.Layers[i]
		if layer.Declared != nil && layer.Declared.ParamsBytes > 0 && len(layer.Params) == 0 {
			return unrunnable(layer, "its %v of parameters are declared, and nothing names them; params does, with shape and dtype", costmodel.Bytes(layer.Declared.ParamsBytes))
		}
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if !tensor.DType.Float() {
				return unrunnable(layer, "parameter %q is stored as %v, and its products take weights in bf16 or fp32", tensor.Name, tensor.DType)
			}
			params.parameter(i, tensor)
		}
	}
	params.firsts = append(params.firsts, len(params.weights))
	return nil
}

// parameter adds one.
func (params *parameters) parameter(index int, tensor *modelgraph.Tensor) {
	layer := &params.graph.Layers[index]
	full := modelgraph.FullName(layer.Name, tensor.Name)
	name := strings.TrimPrefix(strings.TrimPrefix(full, params.graph.Units[params.unit].Name), ".")
	if name == "" {
		name = "self" // the unit is a bare parameter
	}
	rows, columns := matrix(tensor.Shape)
	value := Tensor{Name: name, Class: classWeight, DType: params.dtype, Rows: rows, Columns: columns, Tie: -1}
	own := weight{layer: index, name: tensor.Name, gradient: -1, master: -1, moments: [2]int{-1, -1}}
	trained := params.train && !params.silent
	wide := value
	wide.DType = params.gradients
	if tensor.Owner == "" {
		own.value = params.place(&params.regions.Weights, value)
	} else {
		value.Tie = len(params.regions.Tied)
		own.value = params.add(value)
		params.regions.Tied = append(params.regions.Tied, params.tie(tensor.Owner, &value, &wide, trained))
	}
	if trained {
		wide.Name, wide.Class = name+".gradient", classGradient
		own.gradient = params.place(&params.regions.Grads, wide)
		if tensor.Owner == "" {
			params.regions.Tensors++
			params.states(&own, name, wide)
		}
	}
	params.weights = append(params.weights, own)
}

// states are the optimizer's tensors of a parameter.
func (params *parameters) states(own *weight, name string, wide Tensor) {
	if params.masters {
		wide.Name, wide.Class = name+".master", classMaster
		own.master = params.place(&params.regions.Master, wide)
	}
	if params.workload.Optimizer == costmodel.AdamW {
		for i, moment := range []string{".mean", ".square"} {
			wide.Name, wide.Class = name+moment, classState
			own.moments[i] = params.place(&params.regions.State, wide)
		}
	}
}

// tie is the use of a parameter that another unit owns.
func (params *parameters) tie(owner string, value, wide *Tensor, trained bool) costmodel.Tie {
	tie := costmodel.Tie{Owner: params.owner(owner), Tensor: owner, Weights: value.bytes()}
	if !trained {
		return tie
	}
	tie.Grads = wide.bytes()
	if params.masters {
		tie.Master = wide.bytes()
	}
	if params.workload.Optimizer == costmodel.AdamW {
		tie.State = 2 * wide.bytes()
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

// find is the parameter of a layer that has one of these names and this shape, nil if there is none.
func (params *parameters) find(layer int, names ...string) *weight {
	at := layer - params.graph.Units[params.unit].First
	for i := params.firsts[at]; i < params.firsts[at+1]; i++ {
		if own := &params.weights[i]; slices.Contains(names, own.name) {
			own.used = true
			return own
		}
	}
	return nil
}

// need is find for a parameter that there must be, rows × columns.
func (params *parameters) need(layer int, rows, columns int64, names ...string) (*weight, error) {
	if rows < 1 || columns < 1 {
		return nil, unrunnable(&params.graph.Layers[layer], "parameter %s is %d × %d: a dimension of its op is 0", strings.Join(names, " or "), rows, columns)
	}
	own := params.find(layer, names...)
	if own == nil {
		return nil, unrunnable(&params.graph.Layers[layer], "it has no parameter %s", strings.Join(names, " or "))
	}
	if tensor := &params.code.Tensors[own.value]; tensor.Rows != rows || tensor.Columns != columns {
		return nil, unrunnable(&params.graph.Layers[layer], "parameter %q is %d × %d, and its dimensions ask for %d × %d", own.name, tensor.Rows, tensor.Columns, rows, columns)
	}
	return own, nil
}

// unread refuses parameters that no kernel reads.
func (params *parameters) unread() error {
	for i := range params.weights {
		own := &params.weights[i]
		layer := &params.graph.Layers[own.layer]
		if !own.used && !params.quiet(own.layer) {
			return unrunnable(layer, "it has no kernel that reads parameter %q", own.name)
		}
	}
	return nil
}
