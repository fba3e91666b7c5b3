package benchfile

import (
	"fmt"
	"strconv"
	"strings"
)

// pipeDreamNode reads "ID -- DESCRIPTION -- forward_compute_time=1.0, …". The description is free
// text, so the search for fields begins at the end.
func pipeDreamNode(line string) (profiledNode, error) {
	node := profiledNode{Stage: -1}
	line, stage, placed := cutLast(line, stageMark)
	if placed {
		var err error
		if node.Stage, err = strconv.Atoi(stage); err != nil || node.Stage < 0 {
			return node, fmt.Errorf("stage_id: %q is not a stage, 0 or more", stage)
		}
	}
	head, tail, ok := cutLast(line, timesMark)
	if ok {
		node.ID, node.Description, ok = strings.Cut(head, fieldMark)
	}
	if !ok {
		return node, fmt.Errorf("%q is not a node line, ID -- DESCRIPTION -- forward_compute_time=…, backward_compute_time=…, activation_size=…, parameter_size=…", shorten(line))
	}
	node.ID = strings.TrimSpace(node.ID)
	if node.ID == "" || strings.ContainsAny(node.ID, " \t") {
		return node, fmt.Errorf("%q is not a node's name", shorten(node.ID))
	}
	fields := strings.Split(timesMark[len(fieldMark):]+tail, ", ")
	names := []string{"forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"}
	if len(fields) != len(names) {
		return node, fmt.Errorf("%d fields after the description, not the %d of %s", len(fields), len(names), strings.Join(names, ", "))
	}
	for i, to := range []*float64{&node.Forward, &node.Backward, &node.Activation, &node.Parameters} {
		text, ok := strings.CutPrefix(fields[i], names[i]+"=")
		if !ok {
			return node, fmt.Errorf("%q where %s=… belongs", shorten(fields[i]), names[i])
		}
		if err := readAmount(text, to); err != nil {
			return node, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return node, nil
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
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
		value, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(value >= 0) || value > maxAmount {
			return fmt.Errorf("%q is not a number between 0 and 2^53", shorten(part))
		}
		sum += value
	}
	if sum > maxAmount {
		return fmt.Errorf("%q sums to more than 2^53", shorten(text))
	}
	*to = sum
	return nil
}

func pipeDreamEdge(line string, index map[string]int) (edge [2]int, err error) {
	from, to, ok := strings.Cut(strings.TrimSpace(line), fieldMark)
	if !ok {
		return edge, fmt.Errorf("%q is not an edge line, TAB FROM -- TO", shorten(line))
	}
	for i, id := range []string{strings.TrimSpace(from), strings.TrimSpace(to)} {
		if edge[i], ok = index[id]; !ok {
			return edge, fmt.Errorf("there is no node %q", shorten(id))
		}
	}
	if edge[0] == edge[1] {
		return edge, fmt.Errorf("%q reads itself", from)
	}
	return edge, nil
}

// shorten keeps an error on one line of a readable length.
func shorten(text string) string {
	const maxShown = 80
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}
