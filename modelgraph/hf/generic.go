package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

func genericFolder(dir, reason string) (*modelgraph.Graph, error) {
	ck, err := safetensors.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	return generic(folderName(dir), dir, ck, reason)
}

// generic makes a graph from tensor names alone.
func generic(name, source string, ck *safetensors.Checkpoint, reason string) (*modelgraph.Graph, error) {
	if len(ck.Tensors) == 0 {
		return nil, fmt.Errorf("%s: the files hold no tensors", source)
	}
	if err := paths.CheckNames(ck); err != nil {
		return nil, err
	}
	graph, err := modelgraph.New(name, paths.NewTree(ck).Layers(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	graph.Source, graph.DType = source, mostlyFloat(graph)
	graph.Unknown = []string{reason + ": what its layers compute"}
	graph.Warnings = append(slices.Clone(ck.Warnings),
		reason+": the structure is read from tensor names alone; only weights are counted, no activations, buffers or ties")
	return graph, nil
}

// mostlyFloat is the float type that most parameter bytes have.
func mostlyFloat(graph *modelgraph.Graph) modelgraph.DType {
	bytes := make(map[modelgraph.DType]int64)
	best := noType
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			t := &graph.Layers[i].Params[j]
			if !t.DType.Float() {
				continue
			}
			bytes[t.DType] += t.Bytes
			if bytes[t.DType] > bytes[best] {
				best = t.DType
			}
		}
	}
	return best
}
