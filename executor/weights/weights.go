// Package weights moves the values of parameters between files and whoever
// holds them: from a checkpoint's slices, at random, or saved by an
// earlier run; and back into files that other frameworks load. A parameter goes
// by the framework's name, in the framework's shape; memory is bounded by a
// chunk, whatever its size.
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
	// Stream hands the values of what a name stands for to emit, in order, as
	// type, in chunks of whole values that are good until emit returns.
	Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error
	// Close lets go of files, and is an error where one changed while it was read.
	Close() error
}

// What is asked for and cannot be had, whatever the files say.
var (
	// ErrNone: the model was read from a config or a list of layers, which say
	// how large its weights are and not what.
	ErrNone = errors.New("the model has no weights")
	// ErrOccupied: what is to be saved would have to lie in what is there.
	ErrOccupied = errors.New("neither a new folder nor an empty one")
	// ErrNoConfig: the model was read from something other than a config.json,
	// so that no framework would know what to make of its weights.
	ErrNoConfig = errors.New("it was read without a config.json, by which frameworks load a model")
)

// Entry is a tensor of a file.
type Entry struct {
	Name  string
	DType modelgraph.DType
	Shape []int64
}

// Parameters are the graph's in the framework's order (named_parameters), tied
// ones once, all in one type.
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

// chunk is how many values are handed over at once: 4 MiB of fp32.
const chunk = 1 << 20

// asked refuses a name that a source has nothing under, and a type that nothing
// computes with.
func asked(name string, known bool, dtype modelgraph.DType) error {
	switch {
	case !known:
		return fmt.Errorf("%q: there is no such parameter", name)
	case dtype != modelgraph.F32 && dtype != modelgraph.BF16:
		return fmt.Errorf("%q: asked for as %v, and weights are given as F32 or BF16", name, dtype)
	}
	return nil
}
