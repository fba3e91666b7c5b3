package benchfile

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// File is a parsed file: a [*DNNPartitioning], a [*Piper] or a profile of
// PipeDream's.
type File interface {
	graph(name string) (*modelgraph.Graph, error)
}

// Graph returns a problem as a model with declared costs. name is the file's, for the model's name
// and for errors, which are [*modelgraph.SyntaxError].
//
// A dnn-partitioning file's layers are its colour classes, or several together if a pipeline cannot
// take them apart. A Piper file's nodes run without tensor parallelism and without recomputation,
// and its times count as seconds. A PipeDream profile's layers are its nodes.
func Graph(name string, file File) (*modelgraph.Graph, error) { return file.graph(name) }

// Reader returns the function that reads a file, chosen by its contents; nil: it is none of these.
// Argument has reports which members a JSON object has; it is nil for a file that is not a JSON
// object.
//
// The function returns the file's own numbers, ids and units. Its errors are
// [*modelgraph.SyntaxError] with name.
func Reader(data []byte, has func(member string) bool) func(name string, data []byte) (File, error) {
	switch {
	case has == nil:
		if start, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), 64<<10)])), "\n"); strings.Contains(start, timesMark) {
			return fileOf(parsePipeDream)
		}
	case has("maxSizePerFPGA") || has("maxFPGAs"):
		return fileOf(parseDNNPartitioning)
	case has("maxMemoryPerDevice") || has("mbsInBatch"):
		return fileOf(parsePiper)
	}
	return nil
}

// fileOf keeps a nil pointer from becoming a File that is not nil.
func fileOf[T File](parse func(string, []byte) (T, error)) func(string, []byte) (File, error) {
	return func(name string, data []byte) (File, error) {
		file, err := parse(name, data)
		if err != nil {
			return nil, err
		}
		return file, nil
	}
}
