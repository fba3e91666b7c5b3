package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// wayOut is what to do where a config alone does not give the model.
const wayOut = "give the folder with its safetensors files, or describe the model in a model.json"

// unknownFamilyError is a config whose model_type has no rules here.
type unknownFamilyError struct {
	File, ModelType string
	// Fields are those that a llama has not, with their values, the ones
	// that add modules first: they say what the model is.
	Fields []string
}

// Error implements error.
func (e *unknownFamilyError) Error() string {
	what := unknownType(e.ModelType)
	const most = 3
	switch n := len(e.Fields); {
	case n == 0:
		what += ", and its fields alone do not say what its layers hold"
	case n == 1:
		what += fmt.Sprintf(", and %s is no field of a llama", e.Fields[0])
	case n > most:
		what += fmt.Sprintf(", and %s and %d more are no fields of a llama", strings.Join(e.Fields[:most], ", "), n-most)
	default:
		what += fmt.Sprintf(", and %s are no fields of a llama", strings.Join(e.Fields, ", "))
	}
	return fmt.Sprintf("%s: %s; %s", e.File, what, wayOut)
}

func unknownType(modelType string) string {
	if modelType == "" {
		return "there is no model_type"
	}
	return fmt.Sprintf("model_type %q is not known", clipName(modelType))
}

// unknownFamily lists the fields that say that the model is no llama.
func unknownFamily(c *config, modelType string) error {
	fresh := c.again()
	llama(fresh)
	e := &unknownFamilyError{File: c.file, ModelType: modelType}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(c.m)) {
		v := c.m[name]
		if fresh.shared.read[name] || harmless[name] || anyToken(name) || name == "tie_word_embeddings" || empty(v) {
			continue
		}
		field := plainName(name) + " " + short(v)
		if v.Kind() == '{' || v.Kind() == '[' || len(v) > 20 {
			field = plainName(name)
		}
		if adds(name) {
			e.Fields = append(e.Fields, field)
		} else {
			rest = append(rest, field)
		}
	}
	e.Fields = append(e.Fields, rest...)
	return e
}

// llamaFields are what a config must have to be tried as llama.
var llamaFields = []string{"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}

// asLlama reads a config of no known family as a llama, which only the names
// and shapes of all its files can prove; nil where it makes none.
func asLlama(c *config) (*modelgraph.Graph, *family) {
	fresh := c.again()
	for _, n := range llamaFields {
		if !fresh.has(n) {
			return nil, nil
		}
	}
	f := families["llama"]
	g, err := f.graph(fresh, f.class)
	if err != nil {
		return nil, nil
	}
	g.MaxSeq = f.longest(fresh)
	g.Warnings = append(g.Warnings, unknownType(c.name("model_type"))+": read as llama, whose names and shapes its files have; what its layers compute may differ")
	return g, f
}

// unknownFieldError is a config with a field that the rules of its family do
// not know to be harmless, or, where Value is empty, without a field whose
// default is not known.
type unknownFieldError struct {
	File, Field, Value, ModelType, Class string
}

// Error implements error.
func (e *unknownFieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s: it is absent, and its default for model_type %q is not known; write it into the file, or %s", e.File, e.Field, clipName(e.ModelType), wayOut)
	}
	return fmt.Sprintf("%s: %s: %s: a %s of model_type %q is not known to have this field, which may change its layers; %s",
		e.File, plainName(e.Field), e.Value, e.Class, clipName(e.ModelType), wayOut)
}

// plainName is a field's name as an error has it: short, on one line.
func plainName(name string) string {
	return onOneLine(clipName(name))
}
