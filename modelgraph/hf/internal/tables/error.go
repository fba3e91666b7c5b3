package tables

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// Error is a config that the table of a release does not explain.
type Error struct {
	File, Field, Text string
}

// Error implements error.
func (err *Error) Error() string {
	return fmt.Sprintf("%s: %s: %s; %s", err.File, spell.Plain(err.Field), err.Text, spell.WayOut)
}

// InJSON is a value in a config's form, cut after 60 bytes.
func InJSON(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "the value"
	}
	return spell.Short(text)
}

// FieldError is a config with a field that its family does not know to be harmless. If Value
// is empty, it lacks a field without a known default.
type FieldError struct {
	File, Field, Value, ModelType, Class string
	// Meant suggests another type.
	Meant string
}

// Error implements error.
func (err *FieldError) Error() string {
	if err.Value == "" {
		return fmt.Sprintf("%s: %s: it is absent, and its default for model_type %q is not known%s; write it into the file, or %s", err.File, err.Field, spell.Clip(err.ModelType), err.Meant, spell.WayOut)
	}
	return fmt.Sprintf("%s: %s: %s: a %s of model_type %q is not known to have this field, which may change its layers; %s",
		err.File, spell.Plain(err.Field), err.Value, err.Class, spell.Clip(err.ModelType), spell.WayOut)
}
