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
