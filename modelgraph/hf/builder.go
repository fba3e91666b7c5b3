package hf

import "github.com/devmap-dev/devmap/modelgraph"

// builder collects a module tree in the framework's module order. Tensors
// are given without a type and get the model's.
type builder struct {
	layers []modelgraph.Layer
	ties   [][]string

	unitName string
	stream   modelgraph.Stream
	// hidden names the layer whose output is the hidden state so far, the
	// residual stream included.
	hidden string
	// hollow are modules without tensors outside the units (a dropout).
	hollow []string
	// warnings are those of the graph.
	warnings []string
}

// unit gathers the layers that f adds into one wrap unit (an instance of a
// no-split class).
func (b *builder) unit(name string, f func()) {
	outer := b.unitName
	if outer == "" {
		b.unitName = name
	}
	f()
	b.unitName = outer
}

// on sets the token stream of the layers that f adds.
func (b *builder) on(s modelgraph.Stream, f func()) {
	outer := b.stream
	b.stream = s
	f()
	b.stream = outer
}

// add appends a layer. inputs: what it transforms, the residual added to the
// result, an encoder's output; empty names are left out.
func (b *builder) add(name string, op modelgraph.Op, inputs []string, params ...modelgraph.Tensor) *modelgraph.Layer {
	in := make([]string, 0, len(inputs))
	for _, s := range inputs {
		if s != "" {
			in = append(in, s)
		}
	}
	b.layers = append(b.layers, modelgraph.Layer{
		Name: name, Op: op, Inputs: in, Params: params, Unit: b.unitName, Stream: b.stream,
	})
	return &b.layers[len(b.layers)-1]
}

// tie shares the tensor named first with the others.
func (b *builder) tie(names ...string) { b.ties = append(b.ties, names) }

// empty notes a module without tensors outside the units: Accelerate's maps
// name it where they split the module around it.
func (b *builder) empty(name string) { b.hollow = append(b.hollow, name) }

// noType is what a tensor has before the model's type is known.
var noType modelgraph.DType

// tensor is one parameter [shape].
func tensor(name string, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape}
}

// buffer is a tensor of a fixed type, whatever the model's.
func buffer(name string, d modelgraph.DType, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape, DType: d}
}

// linear is nn.Linear: weight [out, in] and, if asked for, bias [out].
func linear(name string, in, out int64, bias bool) []modelgraph.Tensor {
	ts := []modelgraph.Tensor{tensor(dot(name, "weight"), out, in)}
	if bias {
		ts = append(ts, tensor(dot(name, "bias"), out))
	}
	return ts
}

// normParams is a norm's weight [n] and, if asked for, bias [n].
func normParams(name string, n int64, bias bool) []modelgraph.Tensor {
	ts := []modelgraph.Tensor{tensor(dot(name, "weight"), n)}
	if bias {
		ts = append(ts, tensor(dot(name, "bias"), n))
	}
	return ts
}

// join concatenates lists of tensors.
func join(lists ...[]modelgraph.Tensor) []modelgraph.Tensor {
	var out []modelgraph.Tensor
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// graph finishes the module tree in the given type.
func (b *builder) graph(name string, d modelgraph.DType) (*modelgraph.Graph, error) {
	for i := range b.layers {
		for _, ts := range [][]modelgraph.Tensor{b.layers[i].Params, b.layers[i].Buffers} {
			for j := range ts {
				if ts[j].DType == noType {
					ts[j].DType = d
				}
			}
		}
	}
	g, err := modelgraph.New(name, b.layers, b.ties)
	if err == nil {
		g.Hollow, g.Warnings = b.hollow, b.warnings
	}
	return g, err
}
