package hf

import (
	"fmt"
	"strings"
)

// tally counts tensors for a warning.
type tally struct {
	count int
	bytes int64
	first []string
}

func (t *tally) add(name string, bytes int64) {
	t.count++
	t.bytes += bytes
	if len(t.first) < 3 {
		t.first = append(t.first, fmt.Sprintf("%q", clipName(name)))
	}
}

// names are the first few, and how many more there are.
func (t *tally) names() string {
	s := strings.Join(t.first, ", ")
	if n := t.count - len(t.first); n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

func clipName(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}
