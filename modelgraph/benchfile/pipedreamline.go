package benchfile

import (
	"fmt"
	"strconv"
	"strings"
)

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
	if sum > most {
		return fmt.Errorf("%q sums to more than 2^53", shorten(text))
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
