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

func (counted *tally) add(name string, bytes int64) {
	counted.count++
	counted.bytes += bytes
	if len(counted.first) < 3 {
		counted.first = append(counted.first, fmt.Sprintf("%q", clipName(name)))
	}
}

// names are the first few, and how many more there are.
func (counted *tally) names() string {
	text := strings.Join(counted.first, ", ")
	if count := counted.count - len(counted.first); count > 0 {
		text += fmt.Sprintf(" and %d more", count)
	}
	return text
}
