package workloads

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Form is a kind of file that this package reads.
type Form func(file string, data []byte) (*modelgraph.Graph, error)

// FormOf recognises a file by what is in it: has says which members a JSON
// object has, and is nil where the file is no such object. It returns nil for
// what is not read here.
func FormOf(data []byte, has func(member string) bool) Form {
	switch {
	case has == nil:
		if start, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), 64<<10)])), "\n"); strings.Contains(start, timesMark) {
			return graphOf(ParsePipeDream)
		}
	case has("maxSizePerFPGA") || has("maxFPGAs"):
		return graphOf(ParseDNNPartitioning)
	case has("maxMemoryPerDevice") || has("mbsInBatch"):
		return graphOf(ParsePiper)
	}
	return nil
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
