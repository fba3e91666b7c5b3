package modelgraph

import (
	"fmt"
	"strings"
)

// SyntaxError is an error in an input: the file, the place in it, and what is wrong with the value
// there.
type SyntaxError struct {
	File  string
	Place string // a path such as layers[3].inputs[0], or a line:column
	Msg   string
}

// Error implements error.
func (err *SyntaxError) Error() string {
	var parts []string
	for _, text := range []string{err.File, err.Place, err.Msg} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": ")
}

// cycleError names layers that read each other in a cycle, at most ten. It has no place, because no
// single layer is wrong.
func cycleError(names []string) *SyntaxError {
	first, more := names[0], ""
	if len(names) > 10 {
		more = fmt.Sprintf(" → … (%d more)", len(names)-10)
		names = names[:10]
	}
	return placeError("", "layers read each other in a circle: %s%s → %q", strings.Join(quoteAll(names), " → "), more, first)
}

func quoteAll(names []string) []string {
	q := make([]string, len(names))
	for i, name := range names {
		q[i] = fmt.Sprintf("%q", name)
	}
	return q
}

func placeError(place, format string, args ...any) *SyntaxError {
	return &SyntaxError{Place: place, Msg: fmt.Sprintf(format, args...)}
}
