package hf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// typeTree collects the tensors of a model.
type typeTree struct {
	file      string
	in        *release
	tensors   []typeTensor
	ties      map[string]string // name to its owner's
	units     map[string]string // modules that one device may need whole, and their classes
	wide      []string          // expressions for parameters that stay in float32
	noSplit   []string          // their classes that it needs; a unit without a class counts too
	outermost bool              // no unsplit class: members of the outermost lists stay whole
	holders   map[string]bool   // modules around these, and those lists
	lists     *tree             // of its names
	root      *typeObject       // the config
	linear    []string          // modules that are linear layers, if that is known of all
	depth     int
	visited   int // names that were evaluated
	// cause is the part of a class's line that refuses the config: [class, kind, …].
	// fixtures/oracle/loosening.py collects builds that decide it.
	cause []any
}

// typeTensor is a parameter or a buffer. Its key sorts it in module order.
type typeTensor struct {
	name       string
	key        []int
	shape      []int64
	dtype      string
	buffer     bool
	persistent bool
}

func (tree *typeTree) unexplained(of *evaluation, class *typeClass, why string, cause ...any) error {
	field := of.object.prefix + of.place
	said := ""
	tree.cause = append([]any{class.Class}, cause...)
	if v, ok := of.object.get(of.place); ok && of.object.inner[of.place] == nil {
		said = inJSON(v) + ": "
	}
	return &typeError{tree.file, field, fmt.Sprintf("%sthe table of Transformers %s does not say what a %s is then: %s", said, tree.in.name, class.Class, why)}
}

// numbers are the numbers that a name with stars has.
func (tree *typeTree) numbers(class *typeClass, of *evaluation, pattern string) [][]int {
	all := [][]int{nil}
	var part int
	for at := 0; at <= len(pattern); at = part + 1 {
		part = at + strings.IndexByte(pattern[at:]+".", '.')
		if pattern[at:part] != "*" {
			continue
		}
		var next [][]int
		for _, outer := range all {
			v := of.eval(class.Rounds[pattern[:part]], outer)
			count, ok := number(v)
			if !ok && v != nil || count != math.Trunc(count) {
				of.fail("%s is no number of modules", inJSON(v))
			}
			if of.err != nil {
				return nil
			}
			if count > maxRounds || len(next) > maxTensors {
				of.fail("there are too many")
				return nil
			}
			for i := range int(max(count, 0)) {
				next = append(next, append(slices.Clone(outer), i))
			}
		}
		all = next
	}
	return all
}

// inJSON is a value in a config's form, cut after 60 bytes.
func inJSON(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "the value"
	}
	return short(text)
}

// typeError is a config that the table of a release does not explain.
type typeError struct {
	File, Field, Text string
}

// Error implements error.
func (err *typeError) Error() string {
	return fmt.Sprintf("%s: %s: %s; %s", err.File, plainName(err.Field), err.Text, wayOut)
}

// maxTensors bounds a model, and the names that a table evaluates for it.
const maxTensors = 1_000_000

// linearOf are the linear layers in a class's lists, nil if a matrix is in neither list.
func linearOf(tree *typeTree, class *typeClass) []string {
	for _, t := range tree.tensors {
		if module := starred(parent(t.name)); len(t.shape) == 2 && lastComponent(t.name) == "weight" && !slices.Contains(class.Linear, module) && !slices.Contains(class.Tables, module) {
			return nil
		}
	}
	return class.Linear
}
