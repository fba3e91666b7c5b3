package benchfile

import (
	"errors"

	"github.com/devmap-dev/devmap/modelgraph"
)

// cycle names a cycle of nodes, nil where there is none. It is asked before
// other faults of the edges: an edge too many often breaks more than one rule.
func cycle(file string, names []string, edges [][2]int) error {
	nodes := make([]modelgraph.Layer, len(names))
	for i := range nodes {
		d := modelgraph.NotDeclared()
		nodes[i] = modelgraph.Layer{Name: names[i], Declared: &d}
	}
	_, err := layers(file, nodes, edges)
	var cyclic *modelgraph.CycleError
	if errors.As(err, &cyclic) {
		return err
	}
	return nil
}

// known are the edges between two nodes that the file has.
func known(ends [][2]*int, index map[int]int) [][2]int {
	var out [][2]int
	for _, e := range ends {
		if e[0] == nil || e[1] == nil {
			continue
		}
		from, first := index[*e[0]]
		to, second := index[*e[1]]
		if first && second && from != to {
			out = append(out, [2]int{from, to})
		}
	}
	return out
}
