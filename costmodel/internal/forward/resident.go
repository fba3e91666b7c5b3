package forward

import (
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Resident is what components' tensors take of the allocator's pool when they
// are brought to a GPU one by one (Module.to), tied ones once.
func Resident(graphs ...*modelgraph.Graph) int64 {
	total, pool := int64(0), allocator.Pool{}
	for _, graph := range graphs {
		each(graph, func(tensor *modelgraph.Tensor) { total += pool.Alloc(tensor.Bytes) })
	}
	return total
}

// Bytes is the size of a component's tensors.
func Bytes(graph *modelgraph.Graph) int64 {
	total := int64(0)
	each(graph, func(tensor *modelgraph.Tensor) { total += tensor.Bytes })
	return total
}

func each(graph *modelgraph.Graph, visit func(*modelgraph.Tensor)) {
	for i := range graph.Layers {
		for _, tensor := range graph.Layers[i].Owned() {
			visit(tensor)
		}
		for j := range graph.Layers[i].Buffers {
			visit(&graph.Layers[i].Buffers[j])
		}
	}
}
