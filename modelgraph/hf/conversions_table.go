package hf

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
)

// conversionsGz holds how Transformers 5.17 turns stored names into names of
// modules (fixtures/oracle/conversions.py made it from Transformers itself):
// the rules of conversion_mapping.py, and of each class which of them apply.
//
//go:embed conversions.jsonl.gz
var conversionsGz []byte

// conversionTable is the unpacked table.
var conversionTable = sync.OnceValue(func() []byte {
	reader, err := gzip.NewReader(bytes.NewReader(conversionsGz))
	if err == nil {
		var table []byte
		if table, err = io.ReadAll(reader); err == nil {
			return table
		}
	}
	panic(fmt.Sprintf("conversions.jsonl.gz: %v", err)) // embedded: a build fault
})

// conversionLine reads the first line that begins with head, has the other
// texts and is taken by ok.
func conversionLine[line any](ok func(*line) bool, head string, others ...string) *line {
	for text := range bytes.Lines(conversionTable()) {
		without := func(other string) bool { return !bytes.Contains(text, []byte(other)) }
		if !bytes.HasPrefix(text, []byte(head)) || slices.ContainsFunc(others, without) {
			continue
		}
		read := new(line)
		if err := json.Unmarshal(text, read, json.RejectUnknownMembers(true)); err != nil {
			panic(fmt.Sprintf("conversions.jsonl.gz: %s: %v", head, err)) // embedded: a build fault
		}
		if ok == nil || ok(read) {
			return read
		}
	}
	return nil
}

// namedClassOf is the line of a class, nil where Transformers has none.
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
