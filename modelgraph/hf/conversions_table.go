package hf

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// conversionsGz has Transformers 5.17's rules from stored names to module names
// (conversion_mapping.py), and the rules of each class (fixtures/oracle/conversions.py made it).
//
//go:embed conversions.jsonl.gz
var conversionsGz []byte

var conversionTable = embedded.New("conversions.jsonl.gz", conversionsGz)

// conversionLine reads the first line that begins with head, has the other texts and passes ok.
func conversionLine[line any](ok func(*line) bool, head string, others ...string) *line {
	for text := range conversionTable.Lines(head) {
		without := func(other string) bool { return !bytes.Contains(text, []byte(other)) }
		if slices.ContainsFunc(others, without) {
			continue
		}
		read := new(line)
		conversionTable.Read(text, read)
		if ok == nil || ok(read) {
			return read
		}
	}
	return nil
}

// namedClassOf is the line of a class, nil if Transformers has none.
func namedClassOf(class, modelType string) *namedClass {
	return conversionLine[namedClass](nil, fmt.Sprintf(`{"class":%q,"type":%q,`, class, modelType))
}

// baseOf is the line of the class that AutoModel makes for a type.
func baseOf(modelType string) *namedClass {
	return conversionLine(func(line *namedClass) bool { return line.Type == modelType }, `{"class":`, fmt.Sprintf(`"type":%q,`, modelType), `"base":true`)
}

// rulesOf are the rules kept under a class or a model type, nil for none.
func rulesOf(name string) []nameRule {
	found := conversionLine[struct {
		Rules string     `json:"rules"`
		List  []nameRule `json:"list"`
	}](nil, fmt.Sprintf(`{"rules":%q,`, name))
	if found == nil {
		return nil
	}
	return found.List
}
