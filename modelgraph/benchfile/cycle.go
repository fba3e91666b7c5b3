package benchfile

import (
	"errors"

	"github.com/devmap-dev/devmap/modelgraph"
)

// cycle returns an error that names a cycle of nodes, nil if there is none. It comes before other
// errors of the edges, as a surplus edge often breaks more than one rule.
func cycle(file string, names []string, edges [][2]int) error {
	nodes := make([]modelgraph.Layer, len(names))
	for i := range nodes {
		declared := modelgraph.NotDeclared()
		nodes[i] = modelgraph.Layer{Name: names[i], Declared: &declared}
	}
	_, err := layers(file, nodes, edges)
	var fault *modelgraph.SyntaxError
	if errors.As(err, &fault) && fault.Place == "" {
		return err
	}
	return nil
}

// names returns the names of a file's nodes.
func names[Node interface{ name() string }](nodes []Node) []string {
	out := make([]string, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].name()
	}
	return out
}

// knownEnds returns the edges between two nodes that the file has. An end is nil if the file names
// none.
func knownEnds[Edge interface{ ends() [2]*int }](edges []Edge, index map[int]int) [][2]int {
	var out [][2]int
	for _, edge := range edges {
		end := edge.ends()
		if end[0] == nil || end[1] == nil {
			continue
		}
		from, first := index[*end[0]]
		to, second := index[*end[1]]
		if first && second && from != to {
			out = append(out, [2]int{from, to})
		}
	}
	return out
}
