package weights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// deviation is that of the matrices: initializer_range of most configs.
const deviation = 0.02

// Random draws the parameters of a graph as frameworks do before training:
// matrices from a normal distribution of deviation 0.02, biases 0, the weights
// of norms 1 (0 where they are added to 1: Gemma). What a parameter gets depends
// on its name, its shape and the seed alone, whatever else the model has and
// wherever it lies; bf16 values are the fp32 ones rounded.
func Random(graph *modelgraph.Graph, seed uint64) Source {
	source := &random{seed: seed, of: make(map[string]drawn)}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range layer.Owned() {
			name := modelgraph.FullName(layer.Name, tensor.Name)
			source.of[name] = drawn{name, tensor, constantOf(layer, tensor)}
		}
	}
	for _, group := range graph.Ties {
		for _, name := range group[1:] {
			source.of[name] = source.of[group[0]]
		}
	}
	return source
}

type random struct {
	seed  uint64
	of    map[string]drawn
	chunk []byte
}

// drawn is a parameter and the value that all of it has; nil: it is drawn.
type drawn struct {
	name     string
	tensor   *modelgraph.Tensor
	constant *float32
}

// constantOf is the one value of a norm's weight or a bias.
func constantOf(layer *modelgraph.Layer, tensor *modelgraph.Tensor) *float32 {
	one, zero := float32(1), float32(0)
	if len(tensor.Shape) != 1 {
		return nil
	}
	style := modelgraph.RMSNorm
	switch operation := layer.Op.(type) {
	case modelgraph.Norm:
		style = operation.Style
	case modelgraph.Attention:
		style = operation.QKNorm
	}
	switch {
	case tensor.Name == "bias" || strings.HasSuffix(tensor.Name, ".bias") || strings.HasSuffix(tensor.Name, "_bias"):
		return &zero
	case style == modelgraph.GemmaRMSNorm:
		return &zero
	}
	return &one
}

// Stream implements Source.
func (source *random) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func([]byte) error) error {
	of, known := source.of[name]
	switch {
	case !known:
		return unknownName(name)
	case !wanted(dtype):
		return fmt.Errorf("%q: asked for as %v, and weights are given as F32 or BF16", name, dtype)
	}
	draw := of.values(source.seed)
	for left := of.tensor.Numel(); left > 0; left -= chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		source.chunk = source.chunk[:0]
		for range min(left, chunk) {
			source.chunk = appendValue(source.chunk, draw(), dtype)
		}
		if err := emit(source.chunk); err != nil {
			return err
		}
	}
	return nil
}

// values is where a parameter's come from, one after another.
func (of *drawn) values(seed uint64) func() float32 {
	if of.constant != nil {
		return func() float32 { return *of.constant }
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %v", seed, of.name, of.tensor.Shape))
	generator := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
	return func() float32 { return float32(deviation * generator.NormFloat64()) }
}

// Close implements Source.
func (source *random) Close() error { return nil }
