package hf

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// typeError is a config that the table of a release does not explain.
type typeError struct {
	File, Field, Text string
}

// Error implements error.
func (err *typeError) Error() string {
	return fmt.Sprintf("%s: %s: %s; %s", err.File, plainName(err.Field), err.Text, wayOut)
}

// inJSON is a value in a config's form, cut after 60 bytes.
func inJSON(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "the value"
	}
	return short(text)
}

// unknownFieldError is a config with a field that its family does not know to be harmless. If Value
// is empty, it lacks a field without a known default.
type unknownFieldError struct {
	File, Field, Value, ModelType, Class string
	// Meant suggests another type.
	Meant string
}

// Error implements error.
func (err *unknownFieldError) Error() string {
	if err.Value == "" {
		return fmt.Sprintf("%s: %s: it is absent, and its default for model_type %q is not known%s; write it into the file, or %s", err.File, err.Field, clipName(err.ModelType), err.Meant, wayOut)
	}
	return fmt.Sprintf("%s: %s: %s: a %s of model_type %q is not known to have this field, which may change its layers; %s",
		err.File, plainName(err.Field), err.Value, err.Class, clipName(err.ModelType), wayOut)
}
