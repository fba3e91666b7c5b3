package hf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
)

// classesGz holds what the module tree of every model class of Transformers
// 5.17 looks like, one class a line (fixtures/oracle/classes.py made it from
// Transformers itself).
//
//go:embed classes.jsonl.gz
var classesGz []byte

// listedClass is one line. Names are patterns: a star matches a number that a
// list of modules counts.
type listedClass struct {
	Class  string   `json:"class"`
	Type   string   `json:"type"`   // model_type
	Prefix string   `json:"prefix"` // base_model_prefix
	Params []string `json:"params"` // in module order
	// Default is how many of Params, the first, the default configuration has.
	Default int `json:"default"`
	// Ties are the names of one parameter each, where word embeddings are
	// tied, as they are by default where Tied is true; AlwaysTied those that
	// are one whatever the configuration says.
	Ties       [][]string `json:"ties"`
	Tied       bool       `json:"tied"`
	AlwaysTied [][]string `json:"always_tied"`
	// Buffers says which are stored.
	Buffers map[string]bool `json:"buffers"`
	// NoSplit are the modules that one device must hold whole.
	NoSplit []string `json:"no_split"`
	// Ignored are expressions for stored names that are left out.
	Ignored []string `json:"ignored"`
	// Renames are stored names, with a star for every number, and what they
	// become; the numbers are in order, those that are over are dropped
	// (experts that are stacked).
	Renames map[string]string `json:"renames"`
	// Converted: Transformers has rules for the names of this class, so that
	// one which is not known here may become any other.
	Converted bool `json:"converted"`
}

// findClass looks a class up; ok is false where Transformers 5.17 has no such
// class for the model type, or it was not built for the table.
func findClass(class, modelType string) (c *listedClass, ok bool, err error) {
	reader, err := gzip.NewReader(bytes.NewReader(classesGz))
	if err != nil {
		return nil, false, fmt.Errorf("classes.jsonl.gz: %w", err) // embedded: a build fault
	}
	head := fmt.Appendf(nil, `{"class":%q,"type":%q,`, class, modelType)
	from := bufio.NewReaderSize(reader, 1<<16)
	for {
		line, err := from.ReadBytes('\n')
		if bytes.HasPrefix(line, head) {
			c = new(listedClass)
			if err := json.Unmarshal(line, c, json.RejectUnknownMembers(true)); err != nil {
				return nil, false, fmt.Errorf("classes.jsonl.gz: %s: %w", class, err)
			}
			return c, true, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, false, nil
		case err != nil:
			return nil, false, fmt.Errorf("classes.jsonl.gz: %w", err) // embedded: a build fault
		}
	}
}
