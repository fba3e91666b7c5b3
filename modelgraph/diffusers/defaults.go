package diffusers

import (
	_ "embed"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// componentsGz holds the arguments of diffusers' constructors with their
// defaults, one class a line (fixtures/oracle/components.py made it from
// diffusers itself).
//
//go:embed components.jsonl.gz
var componentsGz []byte

var componentTable = embedded.New("components.jsonl.gz", componentsGz)

// defaultsOf returns the fields of a class with their defaults, nil if it is not known.
func defaultsOf(class string) map[string]jsontext.Value {
	for line := range componentTable.Lines(fmt.Sprintf(`{"class":%q,`, class)) {
		var entry struct {
			Class  string                    `json:"class"`
			Fields map[string]jsontext.Value `json:"fields"`
		}
		componentTable.Read(line, &entry)
		return entry.Fields
	}
	return nil
}
