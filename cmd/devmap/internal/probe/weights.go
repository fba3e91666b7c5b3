package probe

import (
	"bytes"
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// repeated are drawn weights of which matrices have the same values again and again.
// How long a kernel takes goes by what kind of values it has (of zeros a GPU makes
// less heat, and runs faster), and not by which; drawing all of them would take
// longer than the rest of a probe.
type repeated struct {
	weights.Source

	matrices map[string]int64 // values, by name
	drawn    map[modelgraph.DType][]byte
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

// errEnough ends drawing behind the first chunk.
var errEnough = errors.New("enough is drawn")

// Stream implements weights.Source.
func (source *repeated) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error {
	left, known := source.matrices[name]
	if !known {
		return source.Source.Stream(ctx, name, dtype, emit)
	}
	if source.drawn[dtype] == nil {
		err := source.Source.Stream(ctx, name, dtype, func(chunk []byte) error {
			source.drawn[dtype] = bytes.Clone(chunk)
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	drawn := source.drawn[dtype]
	for left *= dtype.Bits() / 8; left > 0; left -= int64(len(drawn)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(drawn[:min(int64(len(drawn)), left)]); err != nil {
			return err
		}
	}
	return nil
}
