package benchfile

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// pipeDream is a profile as PipeDream's profiler writes it (msr-fiddle/
// pipedream, graph/graph.py): one line a node, one line an edge.
type pipeDream struct {
	Nodes []profiledNode
	// Edges join nodes by their index.
	Edges [][2]int
}

// profiledNode is an operation of a training step.
type profiledNode struct {
	ID          string // "node12"
	Description string // "Conv2d(3, 64, …)"
	// Forward and Backward are milliseconds a mini-batch.
	Forward, Backward float64
	// Activation and Parameters are bytes; several outputs add up.
	Activation, Parameters float64
	// Stage is the stage that a planner put it in, or -1.
	Stage int
}

const (
	fieldMark = " -- "
	timesMark = fieldMark + "forward_compute_time="
	stageMark = fieldMark + "stage_id="
)

// parsePipeDream reads a profile; name is in errors, which are [*modelgraph.SyntaxError]. It does
// not check for cycles.
func parsePipeDream(name string, data []byte) (*pipeDream, error) {
	file := &pipeDream{}
	index := make(map[string]int)
	var edges []string
	var lines []int
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(line, " \r")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "\t"): // nodes may come after their edges
			edges, lines = append(edges, line), append(lines, i+1)
		default:
			node, err := pipeDreamNode(strings.TrimSpace(line))
			if j, known := index[node.ID]; err == nil && known {
				err = fmt.Errorf("%q is already a node, with the description %q", node.ID, file.Nodes[j].Description)
			}
			if err != nil {
				return nil, lineError(name, i+1, err)
			}
			index[node.ID] = len(file.Nodes)
			file.Nodes = append(file.Nodes, node)
		}
	}
	if len(file.Nodes) == 0 {
		return nil, &modelgraph.SyntaxError{File: name, Msg: "no nodes: not a graph.txt of PipeDream's profiler"}
	}
	for i, line := range edges {
		edge, err := pipeDreamEdge(line, index)
		if err != nil {
			return nil, lineError(name, lines[i], err)
		}
		file.Edges = append(file.Edges, edge)
	}
	return file, nil
}

func lineError(name string, line int, err error) error {
	return &modelgraph.SyntaxError{File: name, Place: fmt.Sprintf("line %d", line), Msg: err.Error()}
}

// graph returns the profile as a model with declared costs, with a layer for each node. A node
// keeps its output for the backward pass.
func (file *pipeDream) graph(name string) (*modelgraph.Graph, error) {
	nodes := make([]modelgraph.Layer, len(file.Nodes))
	for i := range file.Nodes {
		node := &file.Nodes[i]
		declared := modelgraph.NotDeclared()
		declared.ParamsBytes, declared.ActivationBytes, declared.OutputBytes = wholeBytes(node.Parameters), wholeBytes(node.Activation), wholeBytes(node.Activation)
		declared.ForwardSeconds, declared.BackwardSeconds = node.Forward/1000, node.Backward/1000
		nodes[i] = modelgraph.Layer{Name: node.ID, Declared: &declared}
	}
	return layers(name, nodes, file.Edges)
}
