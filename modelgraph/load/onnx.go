package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Numbers of fields are those of onnx.proto (ONNX 1.20).

// Limits far above those of any model.
const (
	maxNodes      = 2_000_000 // nodes and tensors of a file
	maxSubgraphs  = 32        // how deep they lie in each other
	maxTensorDims = 64
)

// onnxNode is an operation with its subgraphs.
type onnxNode struct {
	name, kind, scope string
	domain            string
	inputs, outputs   []string
	bodies            []*onnxGraph
	constant, sparse  *span         // the tensor that a Constant makes
	floats            int64         // how many numbers it makes
	called            []*onnxTensor // constants of the function that it calls
}

// onnxGraph is a graph or a subgraph.
type onnxGraph struct {
	name            string
	nodes           []*onnxNode
	weights         []*onnxTensor
	values          map[string]*onnxTensor
	inputs, outputs []string
}

// onnxReader reads a file.
type onnxReader struct {
	*wireFile

	dims      map[string]int64
	symbols   map[string]bool // names of dimensions
	functions map[string]*onnxGraph
	known     map[*onnxGraph]bool // functions whose calls were followed
	count     int
}

// fromONNX reads an ONNX file: its operations, and the sizes of its weights.
func fromONNX(path string, dims map[string]int64) (*modelgraph.Graph, error) {
	opened, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // opened for reading
	reader := &onnxReader{wireFile: &wireFile{name: path, source: opened, size: size}, dims: dims, symbols: map[string]bool{}, functions: map[string]*onnxGraph{}, known: map[*onnxGraph]bool{}}
	var graph *onnxGraph
	err = reader.fields(span{0, size}, func(field wireField) (err error) {
		switch field.number {
		case 7:
			graph, err = reader.graph(field.body, 0)
		case 25:
			err = reader.function(field.body)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if graph == nil {
		return nil, fmt.Errorf("%s: not ONNX: it has no graph", path)
	}
	if err := reader.calls(graph, nil); err != nil {
		return nil, err
	}
	if err := reader.named(); err != nil {
		return nil, err
	}
	return graph.layers(path, dims)
}

// named returns an error for a --dim whose name the file does not have.
func (reader *onnxReader) named() error {
	const most = 20
	for _, name := range slices.Sorted(maps.Keys(reader.dims)) {
		if reader.symbols[name] {
			continue
		}
		has := "none"
		if names := slices.Sorted(maps.Keys(reader.symbols)); len(names) > 0 {
			has = strings.Join(names[:min(len(names), most)], ", ")
		}
		return fmt.Errorf("%s: no dimension is named %q, for --dim %s=%d; symbolic dimensions: %s", reader.name, name, name, reader.dims[name], has)
	}
	return nil
}

func (reader *onnxReader) counted() error {
	reader.count++
	if reader.count > maxNodes {
		return fmt.Errorf("%s: it has more than %d nodes and tensors", reader.name, maxNodes)
	}
	return nil
}

func (reader *onnxReader) graph(body span, depth int) (*onnxGraph, error) {
	if depth > maxSubgraphs {
		return nil, fmt.Errorf("%s: graphs lie in each other %d deep, at most %d are read", reader.name, depth, maxSubgraphs)
	}
	graph := &onnxGraph{values: map[string]*onnxTensor{}}
	err := reader.fields(body, func(field wireField) error {
		switch field.number {
		case 1, 5, 11, 12, 13, 15:
			return reader.member(graph, field, depth)
		case 2:
			name, err := reader.text(field)
			graph.name = name
			return err
		}
		return nil
	})
	return graph, err
}

// member reads a node, a tensor or a value of a graph.
func (reader *onnxReader) member(graph *onnxGraph, field wireField, depth int) error {
	if err := reader.counted(); err != nil {
		return err
	}
	switch field.number {
	case 1:
		node, err := reader.node(field.body, depth)
		if err != nil {
			return err
		}
		weights, err := reader.constant(node)
		graph.weights = append(graph.weights, weights...)
		if len(weights) == 0 {
			graph.nodes = append(graph.nodes, node)
		}
		return err
	case 5:
		tensor, err := reader.tensor(field.body)
		graph.weights = append(graph.weights, tensor)
		return err
	case 15:
		return reader.sparse(graph, field.body)
	}
	value, err := reader.value(field.body)
	if err != nil {
		return err
	}
	switch field.number {
	case 11:
		graph.inputs = append(graph.inputs, value.name)
	case 12:
		graph.outputs = append(graph.outputs, value.name)
	}
	graph.values[value.name] = value
	return nil
}

// sparse reads a sparse initialiser: its values, and their places.
func (reader *onnxReader) sparse(graph *onnxGraph, body span) error {
	return reader.fields(body, func(field wireField) error {
		if field.number != 1 && field.number != 2 {
			return nil
		}
		tensor, err := reader.tensor(field.body)
		if err == nil && field.number == 2 && len(graph.weights) > 0 {
			tensor.name = graph.weights[len(graph.weights)-1].name + ".indices"
		}
		graph.weights = append(graph.weights, tensor)
		return err
	})
}

func (reader *onnxReader) node(body span, depth int) (*onnxNode, error) {
	node := &onnxNode{}
	err := reader.fields(body, func(field wireField) (err error) {
		var text string
		switch field.number {
		case 1, 2, 3, 4, 7:
			if text, err = reader.text(field); err != nil {
				return err
			}
		case 5:
			return reader.attribute(node, field.body, depth)
		case 9:
			return reader.scope(node, field.body)
		}
		switch field.number {
		case 1:
			node.inputs = append(node.inputs, text)
		case 2:
			node.outputs = append(node.outputs, text)
		case 3:
			node.name = text
		case 4:
			node.kind = text
		case 7:
			node.domain = text
		}
		return reader.crowded(len(node.inputs) + len(node.outputs))
	})
	return node, err
}

func (reader *onnxReader) crowded(names int) error {
	const most = 100_000
	if names > most {
		return fmt.Errorf("%s: a node with more than %d inputs and outputs", reader.name, most)
	}
	return nil
}

// scope reads the modules around a node, as torch's exporter writes them: pkg.torch.onnx.name_scopes.
func (reader *onnxReader) scope(node *onnxNode, body span) error {
	key, value, err := reader.pair(body)
	if key == "pkg.torch.onnx.name_scopes" {
		node.scope = scopeOf(value)
	}
	return err
}

func (reader *onnxReader) pair(body span) (key, value string, err error) {
	err = reader.fields(body, func(field wireField) (err error) {
		switch {
		case field.number == 1:
			key, err = reader.text(field)
		case field.number == 2 && field.body.end-field.body.from <= maxName:
			value, err = reader.text(field)
		}
		return err
	})
	return key, value, err
}
