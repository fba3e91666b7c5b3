package devicemap

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// index knows every module path and tensor name of a model.
type index struct {
	paths   map[string]bool
	sorted  []string
	lookups int
}

// maxLookups bounds the searches for a nearest name. Each search compares with every module. A map
// of another model shows that after a few.
const maxLookups = 50

func newIndex(graph *modelgraph.Graph) *index {
	modules := &index{paths: map[string]bool{"": true}}
	add := func(path string) {
		for prefix := range ancestors(path) {
			modules.paths[prefix] = true
		}
		modules.paths[path] = true
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		add(layer.Name)
		for _, ts := range [][]modelgraph.Tensor{layer.Params, layer.Buffers} {
			for j := range ts {
				add(modelgraph.FullName(layer.Name, ts[j].Name))
			}
		}
	}
	for unit := range graph.Units {
		for _, key := range graph.Units[unit].Keys {
			add(key)
		}
	}
	for _, h := range graph.Hollow {
		add(h)
	}
	return modules
}

func (modules *index) real(path string) bool { return modules.paths[path] }

// nearest returns the closest real path, or "" after maxLookups searches.
func (modules *index) nearest(path string) string {
	modules.lookups++
	if modules.lookups > maxLookups || len(path) > 1000 {
		return ""
	}
	if modules.sorted == nil {
		for prefix := range modules.paths {
			if prefix != "" {
				modules.sorted = append(modules.sorted, prefix)
			}
		}
		slices.Sort(modules.sorted)
	}
	return strings.Join(modelgraph.Nearest(path, modules.sorted, 1, len(path)+1), "")
}

// ancestors yields the modules around a path, the root "" last.
func ancestors(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for path != "" {
			path = path[:max(0, strings.LastIndexByte(path, '.'))]
			if !yield(path) {
				return
			}
		}
	}
}
