package main

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// A library's errors name fields ([costmodel.Setting]); here they become the
// flags that people type.

// settingError is an error that says itself with settings as they are named:
// one that holds a [costmodel.Message] has Words too.
type settingError interface {
	error
	Words(name func(costmodel.Setting) string) string
}

// asFlag is a setting as words of a command line.
func asFlag(s costmodel.Setting) string {
	flag := "--" + strings.ReplaceAll(s.Field, "_", "-")
	switch s.Value {
	case "":
		return flag
	case "true", "false": // a switch takes its value with a sign
		return flag + "=" + s.Value
	}
	return flag + " " + s.Value
}

// spoken is the text of an error, each part of it that names settings with the
// flags that set them. What wraps such a part repeats its text, and there it
// is replaced.
func spoken(err error) string {
	text := err.Error()
	if e, ok := err.(settingError); ok { //nolint:errorlint // one step of the chain at a time
		return e.Words(asFlag)
	}
	var inner []error
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if under := e.Unwrap(); under != nil {
			inner = []error{under}
		}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	for _, part := range inner {
		was, said := part.Error(), spoken(part)
		if was != said {
			text = strings.Replace(text, was, said, 1)
		}
	}
	return text
}
