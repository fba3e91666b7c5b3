package modelgraph

import (
	"fmt"
	"strings"
)

// SyntaxError is bad input, located: the file, the place inside it, and what
// is wrong with the value there.
type SyntaxError struct {
	File  string
	Place string // a path such as layers[3].inputs[0], or a line:column
	Msg   string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	var parts []string
	for _, s := range []string{e.File, e.Place, e.Msg} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// CycleError lists layers that read each other in a circle.
type CycleError struct{ Layers []string }

// Error implements error, shortened past ten layers.
func (e *CycleError) Error() string {
	names := e.Layers
	more := ""
	if len(names) > 10 {
		more = fmt.Sprintf(" → … (%d more)", len(names)-10)
		names = names[:10]
	}
	return fmt.Sprintf("layers read each other in a circle: %s%s → %q", strings.Join(quoteAll(names), " → "), more, e.Layers[0])
}

func quoteAll(names []string) []string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return q
}

func placeError(place, format string, args ...any) *SyntaxError {
	return &SyntaxError{Place: place, Msg: fmt.Sprintf(format, args...)}
}
