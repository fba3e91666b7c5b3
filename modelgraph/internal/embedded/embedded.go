// Package embedded reads tables that are built into the program: packed JSON, with an entry on each
// line. An error in a table is an error of the build, so it panics.
package embedded

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// Table is a packed table. Its parts are unpacked on first use.
type Table struct {
	name  string
	parts func() []part
}

// part is a gzip member of a table. In a table of several, lines are sorted, and the header's
// comment is the beginning of the part's first line.
type part struct {
	first string
	lines func() []byte
}

// New returns the table of a file with that name.
func New(name string, packed []byte) *Table {
	return &Table{name, sync.OnceValue(func() (parts []part) {
		var reader gzip.Reader // one for all headers: each would allocate windows
		for len(packed) > 0 {
			if err := reader.Reset(bytes.NewReader(packed)); err != nil {
				panic(fmt.Sprintf("%s: %v", name, err))
			}
			member := packed
			if len(reader.Extra) == sizeField { // its own length, only in tables of several parts
				member = packed[:binary.LittleEndian.Uint32(reader.Extra[sizeField-4:])]
			}
			packed = packed[len(member):]
			parts = append(parts, part{reader.Comment, sync.OnceValue(func() []byte { return unpacked(name, member) })})
		}
		return parts
	})}
}

// sizeField is the length of a gzip subfield of 4 bytes: two letters, two bytes
// of its length, the value (RFC 1952, 2.3.1.1).
const sizeField = 8

func unpacked(name string, packed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		table := make([]byte, binary.LittleEndian.Uint32(packed[len(packed)-4:])) // RFC 1952, 2.3.1: ISIZE
		if _, err = io.ReadFull(reader, table); err == nil {
			return table
		}
	}
	panic(fmt.Sprintf("%s: %v", name, err))
}

// First reads the first line that begins with head; nil if there is none.
func First[line any](table *Table, head string) *line {
	for text := range table.Lines(head) {
		read := new(line)
		table.Read(text, read)
		return read
	}
	return nil
}

// Lines returns the lines that begin with head.
func (table *Table) Lines(head string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		parts := table.parts()
		for i := range parts {
			if parts[i].first > head && !strings.HasPrefix(parts[i].first, head) || i+1 < len(parts) && parts[i+1].first < head {
				continue
			}
			for line := range bytes.Lines(parts[i].lines()) {
				if bytes.HasPrefix(line, []byte(head)) && !yield(line) {
					return
				}
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
