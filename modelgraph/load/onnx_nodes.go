package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// sorted returns an error if a node reads what a later node makes: a cycle.
func (graph *onnxGraph) sorted(outer func(string) bool) error {
	made, later := map[string]bool{"": true}, map[string]string{}
	for _, name := range graph.inputs {
		made[name] = true
	}
	for _, weight := range graph.weights {
		made[weight.name] = true
	}
	for _, node := range graph.nodes {
		for _, name := range node.outputs {
			if _, twice := later[name]; name != "" && (twice || made[name] && !slices.Contains(graph.inputs, name)) {
				return fmt.Errorf("%q is the output of two nodes", name)
			}
			later[name] = cmp.Or(node.name, node.kind)
		}
	}
	known := func(name string) bool { return made[name] || outer != nil && outer(name) }
	for _, node := range graph.nodes {
		if err := node.after(known, later); err != nil {
			return err
		}
		for _, name := range node.outputs {
			made[name] = true
		}
	}
	return nil
}

// after returns an error if a node reads something that is not known yet.
func (node *onnxNode) after(known func(string) bool, later map[string]string) error {
	for _, body := range node.bodies {
		if err := body.sorted(known); err != nil {
			return err
		}
	}
	for _, name := range node.inputs {
		if known(name) {
			continue
		}
		if by, ok := later[name]; ok {
			return fmt.Errorf("node %q reads %q, and node %q makes it later: ONNX nodes are sorted, so this is a cycle", cmp.Or(node.name, node.kind), name, by)
		}
		return fmt.Errorf("node %q reads %q, which nothing makes", cmp.Or(node.name, node.kind), name)
	}
	return nil
}

// reads returns the values that a node and its subgraphs read from the surrounding graph.
func (node *onnxNode) reads() []string {
	names := node.inputs
	for _, body := range node.bodies {
		inside := map[string]bool{}
		for _, one := range body.nodes {
			for _, name := range one.outputs {
				inside[name] = true
			}
		}
		for _, one := range body.nodes {
			names = append(slices.Clip(names), slices.DeleteFunc(slices.Clone(one.reads()), func(name string) bool { return inside[name] })...)
		}
		names = append(slices.Clip(names), body.outputs...)
	}
	return names
}

// inner returns the weights of a node's subgraphs and of the function that it calls.
func (node *onnxNode) inner() []*onnxTensor {
	var found []*onnxTensor
	for _, body := range node.bodies {
		found = append(found, body.inner()...)
	}
	return append(found, node.called...)
}

// inner returns a graph's weights with those of its nodes' subgraphs.
func (graph *onnxGraph) inner() []*onnxTensor {
	found := slices.Clone(graph.weights)
	for _, node := range graph.nodes {
		found = append(found, node.inner()...)
	}
	return found
}

// modulePath returns the path of a node's module: from its weight's name, from the exporter's note,
// or from the node's name.
func modulePath(at int, node *onnxNode, own []*onnxTensor) string {
	for _, weight := range own {
		if cut := strings.LastIndexByte(weight.name, '.'); cut > 0 && !strings.ContainsAny(weight.name, ":/ ") {
			return pathOf(weight.name[:cut])
		}
	}
	if path := pathOf(node.scope); path != "" {
		return path
	}
	if cut := strings.LastIndexByte(node.name, '/'); cut > 0 {
		if path := pathOf(strings.ReplaceAll(node.name[:cut], "/", ".")); path != "" {
			return path
		}
	}
	return fmt.Sprintf("%s_%d", pathOf(strings.ReplaceAll(node.kind, ".", "_")), at)
}

// pathOf returns a module path without empty parts.
func pathOf(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "."), func(part string) bool { return part == "" }), ".")
}

// scopeOf returns the module in a text of torch's exporter: "[”, 'model', 'model.norm', 'mul']".
func scopeOf(text string) string {
	parts := strings.Split(strings.Trim(text, "[]"), ", ")
	if len(parts) < 2 {
		return ""
	}
	return strings.Trim(parts[len(parts)-2], `'"`)
}

// constant returns the tensors of a Constant as weights of the nodes that read it, as runtimes have
// it. Numbers, and lists of integers (shapes, axes), remain results.
func (reader *onnxReader) constant(node *onnxNode) ([]*onnxTensor, error) {
	switch {
	case node.kind != "Constant" || len(node.outputs) != 1 || node.outputs[0] == "":
		return nil, nil
	case node.sparse != nil:
		made := &onnxGraph{}
		err := reader.sparse(made, *node.sparse)
		for k, tensor := range made.weights {
			tensor.name = node.outputs[0] + strings.Repeat(".indices", k)
		}
		return made.weights, err
	case node.floats > 0:
		return []*onnxTensor{{name: node.outputs[0], shape: []int64{node.floats}, dtype: modelgraph.F32, known: true}}, nil
	case node.constant == nil:
		return nil, nil
	}
	read := onnxData{tensor: &onnxTensor{}, raw: -1}
	if err := reader.fields(*node.constant, func(field wireField) error { return reader.data(&read, field) }); err != nil {
		return nil, err
	}
	dtype, _ := modelgraph.ParseDType(onnxTypes[read.kind])
	if sides := len(read.tensor.shape); onnxTypes[read.kind] == "" || sides == 0 || sides == 1 && !dtype.Float() {
		return nil, nil
	}
	tensor, err := reader.tensor(*node.constant)
	if err != nil {
		return nil, err
	}
	tensor.name = node.outputs[0]
	return []*onnxTensor{tensor}, nil
}
