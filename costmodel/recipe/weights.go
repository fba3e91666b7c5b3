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
func (w *writer) layout() error {
	unit := &w.graph.Units[w.unit]
	for i := unit.First; i < unit.End; i++ {
		w.firsts = append(w.firsts, len(w.weights))
		layer := &w.graph.Layers[i]
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if !tensor.DType.Float() {
				return unrunnable(layer, "parameter %q is stored as %v, and its products take weights in bf16 or fp32", tensor.Name, tensor.DType)
			}
			w.parameter(i, tensor)
		}
	}
	w.firsts = append(w.firsts, len(w.weights))
	return nil
}

// parameter adds one.
func (w *writer) parameter(index int, tensor *modelgraph.Tensor) {
	layer := &w.graph.Layers[index]
	full := modelgraph.FullName(layer.Name, tensor.Name)
	name := strings.TrimPrefix(strings.TrimPrefix(full, w.graph.Units[w.unit].Name), ".")
	rows, columns := matrix(tensor.Shape)
	value := Tensor{Name: name, Class: Weight, DType: w.dtype, Rows: rows, Columns: columns, Tie: -1}
	own := weight{layer: index, name: tensor.Name, gradient: -1, master: -1, moments: [2]int{-1, -1}}
	trained := w.train && !w.silent
	wide := value
	wide.DType = w.gradients
	if tensor.Owner == "" {
		own.value = w.place(&w.regions.Weights, value)
	} else {
		value.Tie = len(w.regions.Tied)
		own.value = w.add(value)
		w.regions.Tied = append(w.regions.Tied, w.tie(tensor.Owner, &value, &wide, trained))
	}
	if trained {
		wide.Name, wide.Class = name+".gradient", Gradient
		own.gradient = w.place(&w.regions.Grads, wide)
		if tensor.Owner == "" {
			w.regions.Tensors++
			w.states(&own, name, wide)
		}
	}
	w.weights = append(w.weights, own)
}

// states are what the optimizer has of a parameter.
func (w *writer) states(own *weight, name string, wide Tensor) {
	if w.masters {
		wide.Name, wide.Class = name+".master", Master
		own.master = w.place(&w.regions.Master, wide)
	}
	if w.workload.Optimizer == costmodel.AdamW {
		for i, moment := range []string{".mean", ".square"} {
			wide.Name, wide.Class = name+moment, State
			own.moments[i] = w.place(&w.regions.State, wide)
		}
	}
}

// tie is the use of a parameter that another unit owns.
func (w *writer) tie(owner string, value, wide *Tensor, trained bool) costmodel.Tie {
	tie := costmodel.Tie{Owner: w.owner(owner), Tensor: owner, Weights: value.Bytes()}
	if !trained {
		return tie
	}
	tie.Grads = wide.Bytes()
	if w.masters {
		tie.Master = wide.Bytes()
	}
	if w.workload.Optimizer == costmodel.AdamW {
		tie.State = 2 * wide.Bytes()
	}
	return tie
}

// owner is the unit that owns a parameter of this full name.
func (m *model) owner(full string) int {
	if m.owners == nil {
		m.owners = make(map[string]int)
		for i := range m.graph.Layers {
			layer := &m.graph.Layers[i]
			for _, tensor := range layer.Owned() {
				m.owners[modelgraph.FullName(layer.Name, tensor.Name)] = layer.UnitIndex()
			}
		}
	}
	return m.owners[full]
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
func (w *writer) find(layer int, names ...string) *weight {
	at := layer - w.graph.Units[w.unit].First
	for i := w.firsts[at]; i < w.firsts[at+1]; i++ {
		if own := &w.weights[i]; slices.Contains(names, own.name) {
			own.used = true
			return own
		}
	}
	return nil
}

// need is find for a parameter that there must be, rows × columns.
func (w *writer) need(layer int, rows, columns int64, names ...string) (*weight, error) {
	own := w.find(layer, names...)
	if own == nil {
		return nil, unrunnable(&w.graph.Layers[layer], "it has no parameter %s", strings.Join(names, " or "))
	}
	if tensor := &w.code.Tensors[own.value]; tensor.Rows != rows || tensor.Columns != columns {
		return nil, unrunnable(&w.graph.Layers[layer], "parameter %q is %d × %d, and its dimensions ask for %d × %d", own.name, tensor.Rows, tensor.Columns, rows, columns)
	}
	return own, nil
}

// unread refuses parameters that no kernel reads.
func (w *writer) unread() error {
	for i := range w.weights {
		own := &w.weights[i]
		layer := &w.graph.Layers[own.layer]
		if !own.used && !w.quiet(own.layer) {
			return unrunnable(layer, "it has no kernel that reads parameter %q", own.name)
		}
	}
	return nil
}
