// Package weights moves the values of parameters between files and devices. It reads a checkpoint's
// slices, random values or an earlier run's state, and writes files that other frameworks load.
// Parameters have the framework's names and shapes. Memory is bounded by a chunk, whatever a
// parameter's size.
package weights

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Source has the values of parameters. It is used by one goroutine at a time.
type Source interface {
	// Stream passes the values of a parameter to emit, in order, converted to dtype, in chunks of
	// whole values. A chunk is valid until emit returns.
	Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error
	// Close closes files. It returns an error if one changed while it was read.
	Close() error
}

// Errors that do not depend on what is in files.
var (
	// ErrNone: the model was read from a config or a list of layers, which have the sizes of its
	// weights but not their values.
	ErrNone = errors.New("the model has no weights")
	// ErrOccupied: the folder to save in is not empty.
	ErrOccupied = errors.New("neither a new folder nor an empty one")
	// ErrNoConfig: the model was read from something other than a config.json, so that no framework
	// could load its weights.
	ErrNoConfig = errors.New("it was read without a config.json, by which frameworks load a model")
)

// Entry is a tensor of a file.
type Entry struct {
	Name  string
	DType modelgraph.DType
	Shape []int64
}

// Parameters returns the graph's parameters in the framework's order (named_parameters), tied ones
// once, all in one type.
func Parameters(graph *modelgraph.Graph, dtype modelgraph.DType) []Entry {
	var entries []Entry
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range layer.Owned() {
			entries = append(entries, Entry{modelgraph.FullName(layer.Name, tensor.Name), dtype, slices.Clone(tensor.Shape)})
		}
	}
	return entries
}

// chunk is how many values are passed at once: 4 MiB of fp32.
const chunk = 1 << 20

// asked returns an error for a name without values, and for a type that nothing computes with.
func asked(name string, known bool, dtype modelgraph.DType) error {
	switch {
	case !known:
		return fmt.Errorf("%q: there is no such parameter", name)
	case dtype != modelgraph.F32 && dtype != modelgraph.BF16:
		return fmt.Errorf("%q: asked for as %v, and weights are given as F32 or BF16", name, dtype)
	}
	return nil
}
