package load

import (
	"cmp"
	"fmt"
	"slices"
)

// function reads a FunctionProto: nodes that others call by its name.
func (reader *onnxReader) function(body span) error {
	graph := &onnxGraph{values: map[string]*onnxTensor{}}
	var domain string
	err := reader.fields(body, func(field wireField) (err error) {
		switch field.number {
		case 1:
			graph.name, err = reader.text(field)
		case 7:
			err = reader.member(graph, wireField{number: 1, body: field.body}, 1)
		case 10:
			domain, err = reader.text(field)
		}
		return err
	})
	reader.functions[domain+":"+graph.name] = graph
	return err
}

// calls gives nodes the constants of the functions that they call: runtimes copy a function into
// each call.
func (reader *onnxReader) calls(graph *onnxGraph, above []*onnxGraph) error {
	for _, node := range graph.nodes {
		for _, body := range node.bodies {
			if err := reader.calls(body, above); err != nil {
				return err
			}
		}
		function := reader.functions[node.domain+":"+node.kind]
		if function == nil {
			continue
		}
		if slices.Contains(above, function) {
			return fmt.Errorf("%s: node %q: the function %q calls itself, which ONNX does not allow", reader.name, cmp.Or(node.name, node.kind), node.kind)
		}
		if !reader.known[function] {
			if err := reader.calls(function, append(slices.Clip(above), function)); err != nil {
				return err
			}
			reader.known[function] = true
		}
		node.called = function.inner()
		reader.count += len(node.called)
		if err := reader.counted(); err != nil {
			return err
		}
	}
	return nil
}

func (reader *onnxReader) attribute(node *onnxNode, body span, depth int) error {
	return reader.fields(body, func(field wireField) error {
		switch field.number {
		case 5:
			node.constant = &field.body
			return nil
		case 7:
			node.floats += max(1, (field.body.end-field.body.from)/4)
			return nil
		case 22:
			node.sparse = &field.body
			return nil
		case 6, 11: // graphs
		default:
			return nil
		}
		inner, err := reader.graph(field.body, depth+1)
		node.bodies = append(node.bodies, inner)
		return err
	})
}
