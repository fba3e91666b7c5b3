package forward

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// modules finds a walk's modules by diffusers' names.
type modules struct {
	class  string
	shapes map[string][]int64
	heads  map[string]int64
	counts map[string]int
	single map[string]bool // kept in single precision
	rotary bool            // CogVideoX: tokens are turned by their places
}

func modulesOf(graph *modelgraph.Graph) *modules {
	found := &modules{class: graph.Class, shapes: make(map[string][]int64), heads: make(map[string]int64), counts: make(map[string]int), single: make(map[string]bool)}
	var config struct {
		Rotary bool `json:"use_rotary_positional_embeddings"`
	}
	if err := json.Unmarshal(graph.Config, &config); err == nil {
		found.rotary = config.Rotary
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if op, ok := layer.Op.(modelgraph.Attention); ok {
			found.heads[layer.Name] = op.Heads
		}
		for _, tensors := range [][]modelgraph.Tensor{layer.Params, layer.Buffers} {
			for j := range tensors {
				name := modelgraph.FullName(layer.Name, tensors[j].Name)
				found.note(name, tensors[j].Shape)
				found.single[name] = tensors[j].DType == modelgraph.F32
			}
		}
	}
	return found
}

// note keeps a tensor's shape, and counts the members of the lists in its path.
func (found *modules) note(name string, shape []int64) {
	found.shapes[name] = shape
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if index, err := strconv.Atoi(part); err == nil {
			list := strings.Join(parts[:i], ".")
			found.counts[list] = max(found.counts[list], index+1)
		}
	}
}

// elements is the number of a shape's elements.
func elements(shape []int64) int64 {
	product := int64(1)
	for _, side := range shape {
		product *= side
	}
	return product
}

// module is a place among them.
type module struct {
	*modules
	path string
}

func (mod module) in(name string) module {
	return module{mod.modules, modelgraph.FullName(mod.path, name)}
}

func (mod module) at(list string, index int) module { return mod.in(list).in(strconv.Itoa(index)) }

// count is the number of members of a list.
func (mod module) count(list string) int { return mod.counts[modelgraph.FullName(mod.path, list)] }

// has reports a tensor.
func (mod module) has(name string) bool {
	_, there := mod.shapes[modelgraph.FullName(mod.path, name)]
	return there
}

// out and inward are the sides of a module's weight [out, in, …].
func (mod module) out(name string) int64 { return mod.side(name, 0) }

func (mod module) inward(name string) int64 { return mod.side(name, 1) }

func (mod module) side(name string, index int) int64 {
	shape := mod.shapes[modelgraph.FullName(mod.path, name)+".weight"]
	if index >= len(shape) {
		return 0
	}
	return shape[index]
}

// headCount is the number of heads of an attention.
func (mod module) headCount() int64 { return max(1, mod.heads[mod.path]) }
