package benchfile

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Form is a kind of file that this package reads.
type Form func(file string, data []byte) (*modelgraph.Graph, error)

// Format names a kind of file.
type Format string

// The formats; the empty one is anything else.
const (
	PipeDreamFormat       Format = "PipeDream graph.txt"
	DNNPartitioningFormat Format = "dnn-partitioning"
	PiperFormat           Format = "Piper"
)

// FormatOf recognises a file by what is in it: has says which members a JSON
// object has, and is nil where the file is no such object.
func FormatOf(data []byte, has func(member string) bool) Format {
	switch {
	case has == nil:
		if start, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), 64<<10)])), "\n"); strings.Contains(start, timesMark) {
			return PipeDreamFormat
		}
	case has("maxSizePerFPGA") || has("maxFPGAs"):
		return DNNPartitioningFormat
	case has("maxMemoryPerDevice") || has("mbsInBatch"):
		return PiperFormat
	}
	return ""
}

// FormOf is the reader of a file, nil for what is not read here; see
// [FormatOf].
func FormOf(data []byte, has func(member string) bool) Form {
	switch FormatOf(data, has) {
	case PipeDreamFormat:
		return graphOf(ParsePipeDream)
	case DNNPartitioningFormat:
		return graphOf(ParseDNNPartitioning)
	case PiperFormat:
		return graphOf(ParsePiper)
	default:
		return nil
	}
}

func graphOf[T interface {
	Graph(file string) (*modelgraph.Graph, error)
}](parse func(string, []byte) (T, error)) Form {
	return func(file string, data []byte) (*modelgraph.Graph, error) {
		w, err := parse(file, data)
		if err != nil {
			return nil, err
		}
		return w.Graph(file)
	}
}
