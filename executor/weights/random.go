package weights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/modelgraph"
)

// deviation is the standard deviation of matrices: initializer_range of most configs.
const deviation = 0.02

// mostAtOnce is how many chunks are generated at once: 16 MiB of fp32.
const mostAtOnce = 4

// Random returns random parameters of a graph, as frameworks have them before training. Matrices
// are from a normal distribution of deviation 0.02, biases are 0, the weights of norms 1 (0 if they
// are added to 1: Gemma). The values of a parameter depend only on its name, its shape and the
// seed. Values in bf16 are the fp32 ones rounded.
func Random(graph *modelgraph.Graph, seed uint64) Source {
	source := &random{seed: seed, of: make(map[string]parameter), chunks: make([][]byte, min(mostAtOnce, runtime.GOMAXPROCS(0)))}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range layer.Owned() {
			name := modelgraph.FullName(layer.Name, tensor.Name)
			source.of[name] = parameter{name, tensor, constantOf(layer, tensor)}
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
	seed   uint64
	of     map[string]parameter
	chunks [][]byte // generated at once
}

// parameter is a parameter with the value of all its elements; nil: they are random.
type parameter struct {
	name     string
	tensor   *modelgraph.Tensor
	constant *float32
}

// constantOf returns the value of a norm's weight or a bias, nil for a matrix.
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

// Stream implements Source. Several chunks are generated at once, at most one a processor, so that
// memory is bounded by their size.
func (source *random) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func([]byte) error) error {
	of, known := source.of[name]
	if err := asked(name, known, dtype); err != nil {
		return err
	}
	count := of.tensor.Numel
	for first := int64(0); first < count; first += int64(len(source.chunks)) * chunk {
		var drawing sync.WaitGroup
		for i := range source.chunks {
			begin := first + int64(i)*chunk
			drawing.Go(func() {
				source.chunks[i] = of.generate(source.chunks[i][:0], source.seed, begin, min(chunk, count-begin), dtype)
			})
		}
		drawing.Wait()
		for _, made := range source.chunks {
			if len(made) == 0 {
				break
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := emit(made); err != nil {
				return err
			}
		}
	}
	return nil
}

// generate appends count values from begin on, which is the beginning of a chunk.
func (of *parameter) generate(into []byte, seed uint64, begin, count int64, dtype modelgraph.DType) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %v %d", seed, of.name, of.tensor.Shape, begin/chunk))
	generator := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
	var values [block]float32
	for ; count > 0; count -= block {
		some := values[:min(block, count)]
		for i := range some {
			if of.constant != nil {
				some[i] = *of.constant
			} else {
				some[i] = float32(deviation * generator.NormFloat64())
			}
		}
		into = appendValues(into, some, dtype)
	}
	return into
}

// Close implements Source.
func (source *random) Close() error {
	clear(source.chunks)
	return nil
}
