package workloads

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// PipeDream is a profile as PipeDream's profiler writes it (msr-fiddle/
// pipedream, graph/graph.py): one line a node, one line an edge.
type PipeDream struct {
	Nodes []PipeDreamNode
	// Edges join nodes by their index.
	Edges [][2]int
}

// PipeDreamNode is an operation of a training step.
type PipeDreamNode struct {
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

// ParsePipeDream reads a profile; name stands in errors, which are
// [*modelgraph.SyntaxError]. Whether the graph has a cycle is not looked at.
func ParsePipeDream(name string, data []byte) (*PipeDream, error) {
	g := &PipeDream{}
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
			n, err := pipeDreamNode(strings.TrimSpace(line))
			if j, known := index[n.ID]; err == nil && known {
				err = fmt.Errorf("%q is already a node, with the description %q", n.ID, g.Nodes[j].Description)
			}
			if err != nil {
				return nil, lineError(name, i+1, err)
			}
			index[n.ID] = len(g.Nodes)
			g.Nodes = append(g.Nodes, n)
		}
	}
	if len(g.Nodes) == 0 {
		return nil, &modelgraph.SyntaxError{File: name, Msg: "no nodes: not a graph.txt of PipeDream's profiler"}
	}
	for i, line := range edges {
		e, err := pipeDreamEdge(line, index)
		if err != nil {
			return nil, lineError(name, lines[i], err)
		}
		g.Edges = append(g.Edges, e)
	}
	return g, nil
}

func lineError(name string, line int, err error) error {
	return &modelgraph.SyntaxError{File: name, Place: fmt.Sprintf("line %d", line), Msg: err.Error()}
}

// pipeDreamNode reads "ID -- DESCRIPTION -- forward_compute_time=1.0, …". The
// description may hold anything, so the fields are looked for from the end.
func pipeDreamNode(line string) (PipeDreamNode, error) {
	n := PipeDreamNode{Stage: -1}
	line, stage, placed := cutLast(line, stageMark)
	if placed {
		var err error
		if n.Stage, err = strconv.Atoi(stage); err != nil || n.Stage < 0 {
			return n, fmt.Errorf("stage_id: %q is not a stage, 0 or more", stage)
		}
	}
	head, tail, ok := cutLast(line, timesMark)
	if ok {
		n.ID, n.Description, ok = strings.Cut(head, fieldMark)
	}
	if !ok {
		return n, fmt.Errorf("%q is not a node line, ID -- DESCRIPTION -- forward_compute_time=…, backward_compute_time=…, activation_size=…, parameter_size=…", shorten(line))
	}
	n.ID = strings.TrimSpace(n.ID)
	if n.ID == "" || strings.ContainsAny(n.ID, " \t") {
		return n, fmt.Errorf("%q is not a node's name", shorten(n.ID))
	}
	fields := strings.Split(timesMark[len(fieldMark):]+tail, ", ")
	names := []string{"forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"}
	if len(fields) != len(names) {
		return n, fmt.Errorf("%d fields after the description, not the %d of %s", len(fields), len(names), strings.Join(names, ", "))
	}
	for i, to := range []*float64{&n.Forward, &n.Backward, &n.Activation, &n.Parameters} {
		text, ok := strings.CutPrefix(fields[i], names[i]+"=")
		if !ok {
			return n, fmt.Errorf("%q where %s=… belongs", shorten(fields[i]), names[i])
		}
		if err := readAmount(text, to); err != nil {
			return n, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return n, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// readAmount reads 1.5 or [1.5; 2.5], which is the sum.
func readAmount(text string, to *float64) error {
	parts := []string{text}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return fmt.Errorf("%q lacks its closing bracket", shorten(text))
		}
		parts = strings.Split(inner, ";")
	}
	sum := 0.0
	for _, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(v >= 0) || v > most {
			return fmt.Errorf("%q is not a number between 0 and 2^53", shorten(part))
		}
		sum += v
	}
	*to = sum
	return nil
}

func pipeDreamEdge(line string, index map[string]int) (e [2]int, err error) {
	from, to, ok := strings.Cut(strings.TrimSpace(line), fieldMark)
	if !ok {
		return e, fmt.Errorf("%q is not an edge line, TAB FROM -- TO", shorten(line))
	}
	for i, id := range []string{strings.TrimSpace(from), strings.TrimSpace(to)} {
		if e[i], ok = index[id]; !ok {
			return e, fmt.Errorf("there is no node %q", shorten(id))
		}
	}
	if e[0] == e[1] {
		return e, fmt.Errorf("%q reads itself", from)
	}
	return e, nil
}

// shorten keeps an error on one line of a readable length.
func shorten(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
