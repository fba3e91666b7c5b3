package devicemap

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/nearest"
)

// index knows every module path and tensor name of a model.
type index struct {
	paths   map[string]bool
	sorted  []string
	lookups int
}

// maxLookups bounds the searches for a nearest name: a map of another model
// is told apart after some, and each search compares with every module.
const maxLookups = 50

func newIndex(g *modelgraph.Graph) *index {
	x := &index{paths: map[string]bool{"": true}}
	add := func(path string) {
		for p := range ancestors(path) {
			x.paths[p] = true
		}
		x.paths[path] = true
	}
	for i := range g.Layers {
		l := &g.Layers[i]
		add(l.Name)
		for _, ts := range [][]modelgraph.Tensor{l.Params, l.Buffers} {
			for j := range ts {
				add(modelgraph.FullName(l.Name, ts[j].Name))
			}
		}
	}
	for u := range g.Units {
		for _, k := range g.Units[u].Keys {
			add(k)
		}
	}
	for _, h := range g.Hollow {
		add(h)
	}
	return x
}

func (x *index) real(path string) bool { return x.paths[path] }

// nearest is the closest real path, or empty after many searches.
func (x *index) nearest(path string) string {
	x.lookups++
	if x.lookups > maxLookups || len(path) > 1000 {
		return ""
	}
	if x.sorted == nil {
		for p := range x.paths {
			if p != "" {
				x.sorted = append(x.sorted, p)
			}
		}
		slices.Sort(x.sorted)
	}
	return nearest.Name(path, x.sorted)
}

// ancestors yields the modules that hold a path, the root "" last.
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
