// Package embedded reads tables that are built into the program: packed JSON, a
// line an entry. Its faults are the build's, so it panics.
package embedded

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/go-json-experiment/json"
)

// Table is a packed table, which is unpacked when it is first asked.
type Table struct {
	name  string
	lines func() []byte
}

// New is the table of a file of that name.
func New(name string, packed []byte) *Table {
	return &Table{name, sync.OnceValue(func() []byte {
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err == nil {
			var table []byte
			if table, err = io.ReadAll(reader); err == nil {
				return table
			}
		}
		panic(fmt.Sprintf("%s: %v", name, err))
	})}
}

// Lines are the lines that begin so.
func (table *Table) Lines(head string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(table.lines()) {
			if bytes.HasPrefix(line, []byte(head)) && !yield(line) {
				return
			}
		}
	}
}

// Read decodes a line; every field must be known.
func (table *Table) Read(line []byte, into any) {
	if err := json.Unmarshal(line, into, json.RejectUnknownMembers(true)); err != nil {
		panic(fmt.Sprintf("%s: %.60s: %v", table.name, line, err))
	}
}
