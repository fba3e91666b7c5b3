// Package weights moves the values of parameters between files and whoever
// holds them: from a checkpoint's slices, drawn at random, or saved by an
// earlier run; and back into files that other frameworks load. A parameter goes
// by the framework's name, in the framework's shape; memory is bounded by a
// chunk, whatever its size.
package weights

import (
	"context"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Source has the values of parameters.
type Source interface {
	// Stream hands the values of what a name stands for to emit, in order, as
	// type, in chunks of whole values that are good until emit returns.
	Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error
	// Close lets go of files, and is an error where one changed while it was read.
	Close() error
}
