package probe

import (
	"bytes"
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// repeated are random weights whose matrices repeat the same values. A kernel's time depends on the
// kind of values, not on each one: with zeros a GPU makes less heat, and runs faster. Generating
// all values would take longer than the rest of a probe.
type repeated struct {
	weights.Source

	matrices map[string]int64 // number of values, by name
	chunks   map[modelgraph.DType][]byte
}

func repeatedWeights(graph *modelgraph.Graph) *repeated {
	source := &repeated{weights.Random(graph, 1), make(map[string]int64), make(map[modelgraph.DType][]byte)}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range layer.Owned() {
			if len(tensor.Shape) > 1 {
				source.matrices[modelgraph.FullName(layer.Name, tensor.Name)] = tensor.Numel
			}
		}
	}
	return source
}

// errEnough ends the stream after the first chunk.
var errEnough = errors.New("enough values")

// Stream implements weights.Source.
func (source *repeated) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error {
	left, known := source.matrices[name]
	if !known {
		return source.Source.Stream(ctx, name, dtype, emit)
	}
	if source.chunks[dtype] == nil {
		err := source.Source.Stream(ctx, name, dtype, func(chunk []byte) error {
			source.chunks[dtype] = bytes.Clone(chunk)
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	values := source.chunks[dtype]
	for left *= dtype.Bits() / 8; left > 0; left -= int64(len(values)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(values[:min(int64(len(values)), left)]); err != nil {
			return err
		}
	}
	return nil
}
