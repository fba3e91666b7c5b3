package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// builder collects a module tree in the framework's module order. Tensors are given without a type
// and get the model's.
type builder struct {
	layers []modelgraph.Layer
	ties   [][]string
	joined [][]string // groups of layers that must share a device

	unitName string
	stream   modelgraph.Stream
	// hidden names the layer whose output is the hidden state so far, the residual stream included.
	hidden string
	// epsilon is for LayerNorms that are added.
	epsilon float64
	// hollow are modules without tensors outside the units (a dropout).
	hollow []string
	// warnings are the graph's.
	warnings []string
}

// unit gathers the layers that f adds into one wrap unit (an instance of a no-split class).
func (modules *builder) unit(name string, f func()) {
	outer := modules.unitName
	if outer == "" {
		modules.unitName = name
	}
	f()
	modules.unitName = outer
}

// on sets the token stream of the layers that f adds.
func (modules *builder) on(stream modelgraph.Stream, f func()) {
	outer := modules.stream
	modules.stream = stream
	f()
	modules.stream = outer
}

// add appends a layer. inputs: its main input, the residual added to the result, an encoder's
// output; empty names are skipped.
func (modules *builder) add(name string, op modelgraph.Op, inputs []string, params ...modelgraph.Tensor) *modelgraph.Layer {
	in := make([]string, 0, len(inputs))
	for _, text := range inputs {
		if text != "" {
			in = append(in, text)
		}
	}
	modules.layers = append(modules.layers, modelgraph.Layer{
		Name: name, Op: op, Inputs: in, Params: params, Unit: modules.unitName, Stream: modules.stream,
	})
	return &modules.layers[len(modules.layers)-1]
}

// tie shares the tensor named first with the others.
func (modules *builder) tie(names ...string) { modules.ties = append(modules.ties, names) }

// untyped reports a tensor that takes the model's type.
func (modules *builder) untyped() bool {
	none := func(t modelgraph.Tensor) bool { return t.DType == noType }
	return slices.ContainsFunc(modules.layers, func(layer modelgraph.Layer) bool {
		return slices.ContainsFunc(layer.Params, none) || slices.ContainsFunc(layer.Buffers, none)
	})
}

// join places the named layers, and those from index from on, on one device.
func (modules *builder) join(from int, names ...string) {
	for i := from; i < len(modules.layers); i++ {
		names = append(names, modules.layers[i].Name)
	}
	modules.joined = append(modules.joined, names)
}

// empty notes a module without tensors outside the units: maps name it if they split its parent.
func (modules *builder) empty(name string) { modules.hollow = append(modules.hollow, name) }

// noType is a tensor's type before the model's is known.
var noType modelgraph.DType

// int64Type is for positions and token types, which are buffers.
var int64Type = typeNamed("I64")

// boolType is for masks.
var boolType = typeNamed("BOOL")

// tensor is one parameter [shape].
func tensor(name string, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape}
}

// buffer is a tensor of a fixed type, independent of the model's.
func buffer(name string, dtype modelgraph.DType, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape, DType: dtype}
}

// linearParams is nn.Linear: weight [out, in] and, if asked for, bias [out].
func linearParams(name string, in, out int64, bias bool) []modelgraph.Tensor {
	ts := []modelgraph.Tensor{tensor(dot(name, "weight"), out, in)}
	if bias {
		ts = append(ts, tensor(dot(name, "bias"), out))
	}
	return ts
}

// frozen are tensors that no gradient reaches.
func frozen(tensors []modelgraph.Tensor) []modelgraph.Tensor {
	for i := range tensors {
		tensors[i].Frozen = true
	}
	return tensors
}

// normParams is a norm's weight [count] and, if asked for, bias [count].
func normParams(name string, count int64, bias bool) []modelgraph.Tensor {
	ts := []modelgraph.Tensor{tensor(dot(name, "weight"), count)}
	if bias {
		ts = append(ts, tensor(dot(name, "bias"), count))
	}
	return ts
}

func join(lists ...[]modelgraph.Tensor) []modelgraph.Tensor {
	var out []modelgraph.Tensor
	for _, tensors := range lists {
		out = append(out, tensors...)
	}
	return out
}

// graph finishes the module tree in the given type.
func (modules *builder) graph(name string, dtype modelgraph.DType) (*modelgraph.Graph, error) {
	for i := range modules.layers {
		for _, ts := range [][]modelgraph.Tensor{modules.layers[i].Params, modules.layers[i].Buffers} {
			for j := range ts {
				if ts[j].DType == noType {
					ts[j].DType = dtype
				}
			}
		}
	}
	graph, err := modelgraph.New(name, modules.layers, modules.ties)
	if err == nil {
		graph.Hollow, graph.Warnings = modules.hollow, modules.warnings
		err = modelgraph.Join(graph, modules.joined)
	}
	return graph, err
}

// dot joins the parts of a module path, leaving out empty ones.
func dot(parts ...string) string {
	out := ""
	for _, path := range parts {
		out = modelgraph.FullName(out, path)
	}
	return out
}

func indexed(prefix string, i int64) string { return fmt.Sprintf("%s.%d", prefix, i) }
