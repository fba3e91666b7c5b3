// Package pose turns the files that modelgraph/benchfile reads into the problems
// that their authors pose, in numbers: dnn-partitioning's into package graph's,
// Piper's and PipeDream's into package stages'. It writes answers in the
// authors' own forms, so that their programs can judge them.
package pose

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
)

// Read parses a file of one kind; any other is an error.
func Read[T benchfile.File](name string, data []byte) (T, error) {
	var none T
	var has func(string) bool
	var top map[string]jsontext.Value
	if json.Unmarshal(data, &top) == nil {
		has = func(member string) bool { _, ok := top[member]; return ok }
	}
	reader := benchfile.Reader(data, has)
	if reader == nil {
		return none, fmt.Errorf("%s: not a file of a public problem", name)
	}
	file, err := reader(name, data)
	if err != nil {
		return none, err
	}
	of, ok := file.(T)
	if !ok {
		return none, fmt.Errorf("%s: a %T, not a %T", name, file, none)
	}
	return of, nil
}
