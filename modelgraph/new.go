package modelgraph

import (
	"fmt"
	"strings"
)

// New checks the layers and returns their graph. Layers are in module order. ties lists, per shared
// parameter, the full names that share it; the first one owns it. Errors are [*SyntaxError]. An
// error for layers that read each other in a cycle has no place.
func New(name string, layers []Layer, ties [][]string) (*Graph, error) {
	graph := &Graph{Name: name, Layers: layers}
	steps := []func() error{graph.index, graph.measure, graph.link, graph.group, func() error { return graph.tie(ties) }, graph.order}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return graph, nil
}

func (graph *Graph) index() error {
	if len(graph.Layers) == 0 {
		return placeError("layers", "the model has no layers")
	}
	graph.layerIndex = make(map[string]int, len(graph.Layers))
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if layer.Name == "" {
			return placeError(fmt.Sprintf("layers[%d].name", i), "a layer needs a name")
		}
		if strings.HasPrefix(layer.Name, ".") || strings.HasSuffix(layer.Name, ".") || strings.Contains(layer.Name, "..") {
			return placeError(fmt.Sprintf("layers[%d].name", i), "%q is not a module path: it has an empty part", layer.Name)
		}
		if j, ok := graph.layerIndex[layer.Name]; ok {
			return placeError(fmt.Sprintf("layers[%d].name", i), "%q is also the name of layers[%d]", layer.Name, j)
		}
		graph.layerIndex[layer.Name] = i
	}
	return nil
}

// measure computes the size of every tensor and limits the sum.
func (graph *Graph) measure() error {
	var total int64
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if layer.Op == nil {
			layer.Op = Opaque{}
		}
		if err := checkOp(layer.Op); err != nil {
			return placeError(fmt.Sprintf("layers[%d].op", i), "%v", err)
		}
		for _, list := range []struct {
			kind string
			of   []Tensor
		}{{"params", layer.Params}, {"buffers", layer.Buffers}} {
			for j := range list.of {
				tensor := &list.of[j]
				if err := tensor.measure(); err != nil {
					return placeError(fmt.Sprintf("layers[%d].%s[%d]", i, list.kind, j), "%v", err)
				}
				if total += tensor.Bytes; total > maxBytes {
					return tooLarge(i, layer)
				}
			}
		}
		if err := checkDeclared(layer.Declared); err != nil {
			return placeError(fmt.Sprintf("layers[%d].declared", i), "%v", err)
		}
		if err := layer.checkWeights(); err != nil {
			return placeError(fmt.Sprintf("layers[%d]", i), "%v", err)
		}
		if declared := layer.Declared; declared != nil {
			total += max(0, declared.ParamsBytes) + max(0, declared.ActivationBytes) + max(0, declared.WorkspaceBytes) + max(0, declared.OutputBytes)
		}
		if total > maxBytes {
			return tooLarge(i, layer)
		}
	}
	return nil
}

func tooLarge(i int, layer *Layer) error {
	return placeError(fmt.Sprintf("layers[%d]", i), "the layers up to %q add up to more than 2^56 bytes", layer.Name)
}

func checkDeclared(declared *Declared) error {
	if declared == nil {
		return nil
	}
	for _, value := range []int64{declared.ParamsBytes, declared.ActivationBytes, declared.WorkspaceBytes, declared.OutputBytes} {
		if value > maxBytes {
			return fmt.Errorf("%d is more than 2^56 bytes", value)
		}
	}
	for _, seconds := range []float64{declared.ForwardSeconds, declared.BackwardSeconds} {
		if seconds != seconds || seconds > 1e9 {
			return fmt.Errorf("%v is not a time in seconds", seconds)
		}
	}
	return nil
}

// link resolves the names in Inputs.
func (graph *Graph) link() error {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if layer.Inputs == nil && i > 0 {
			layer.InputLayers = []int{i - 1}
			continue
		}
		layer.InputLayers = make([]int, len(layer.Inputs))
		for j, name := range layer.Inputs {
			k, ok := graph.layerIndex[name]
			if !ok {
				return placeError(fmt.Sprintf("layers[%d].inputs[%d]", i, j), "unknown layer %q", name)
			}
			layer.InputLayers[j] = k
		}
	}
	return nil
}

// names maps full names to parameters. It returns an error if two tensors have one name.
func (graph *Graph) names() (params map[string]*Tensor, layerOf map[string]int, err error) {
	params, layerOf = make(map[string]*Tensor), make(map[string]int)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		add := func(kind string, j int, tensor *Tensor) error {
			full := FullName(layer.Name, tensor.Name)
			if k, ok := layerOf[full]; ok {
				return placeError(fmt.Sprintf("layers[%d].%s[%d].name", i, kind, j), "%q is already a tensor of layers[%d]", full, k)
			}
			layerOf[full] = i
			return nil
		}
		for j := range layer.Params {
			if err := add("params", j, &layer.Params[j]); err != nil {
				return nil, nil, err
			}
			params[FullName(layer.Name, layer.Params[j].Name)] = &layer.Params[j]
		}
		for j := range layer.Buffers {
			if err := add("buffers", j, &layer.Buffers[j]); err != nil {
				return nil, nil, err
			}
		}
	}
	return params, layerOf, nil
}

// tie marks shared tensors and joins their units.
func (graph *Graph) tie(ties [][]string) error {
	byName, layerOf, err := graph.names()
	if err != nil {
		return err
	}
	owns := make(map[string]bool) // of a group before
	for tie, names := range ties {
		if len(names) < 2 {
			return placeError(fmt.Sprintf("ties[%d]", tie), "a tie needs two names or more, it has %d", len(names))
		}
		for j, name := range names {
			tensor, ok := byName[name]
			place := fmt.Sprintf("ties[%d][%d]", tie, j)
			switch {
			case !ok:
				return placeError(place, "%q is not a parameter of the model", name)
			case tensor.Owner != "" || j > 0 && (name == names[0] || owns[name]):
				return placeError(place, "%q is tied twice", name)
			case tensor.Numel != byName[names[0]].Numel:
				return placeError(place, "%q has %d elements and %q has %d: they cannot share storage", name, tensor.Numel, names[0], byName[names[0]].Numel)
			}
			if j > 0 {
				tensor.Owner = names[0]
			}
		}
		owns[names[0]] = true
		graph.Ties = append(graph.Ties, names)
	}
	graph.joinTies(layerOf)
	return nil
}
