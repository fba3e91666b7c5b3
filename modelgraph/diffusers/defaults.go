package diffusers

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// componentsGz holds the arguments of diffusers' constructors with their
// defaults, one class a line (fixtures/oracle/components.py made it from
// diffusers itself).
//
//go:embed components.jsonl.gz
var componentsGz []byte

var componentTable = sync.OnceValue(func() []byte {
	reader, err := gzip.NewReader(bytes.NewReader(componentsGz))
	if err == nil {
		var table []byte
		if table, err = io.ReadAll(reader); err == nil {
			return table
		}
	}
	panic(fmt.Sprintf("components.jsonl.gz: %v", err)) // embedded: a build fault
})

// defaultsOf are the fields of a class, nil where it is not known.
func defaultsOf(class string) map[string]jsontext.Value {
	head := fmt.Appendf(nil, `{"class":%q,`, class)
	for line := range bytes.Lines(componentTable()) {
		if !bytes.HasPrefix(line, head) {
			continue
		}
		var entry struct {
			Class  string                    `json:"class"`
			Fields map[string]jsontext.Value `json:"fields"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			panic(fmt.Sprintf("components.jsonl.gz: %s: %v", class, err))
		}
		return entry.Fields
	}
	return nil
}
