//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"strconv"
	"strings"
)

// size computes a number for a grid or an argument.
type size func(call *Call) (int64, error)

// sizeOf reads rows@role, columns@role, values@role, each@role, #dim, #dim-1 or #dim=default. With
// "?" after the role the size is 0 if the role is missing. A rule has dims without '#'.
func sizeOf(word string) (size, error) {
	if what, role, found := strings.Cut(word, "@"); found {
		of := extents[what]
		if of == nil {
			return nil, fmt.Errorf("%q is no size of a matrix", word)
		}
		role, optional := strings.CutSuffix(role, "?")
		return func(call *Call) (int64, error) {
			if optional && call.matrix(role) == nil {
				return 0, nil
			}
			matrix, err := call.need(role)
			if err != nil {
				return 0, err
			}
			return of(call, matrix), nil
		}, nil
	}
	name, text, given := strings.Cut(strings.TrimPrefix(word, "#"), "=")
	name, last := strings.CutSuffix(name, "-1")
	var less, defaultValue int64
	if last {
		less = 1
	}
	if given {
		var err error
		if defaultValue, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	return func(call *Call) (int64, error) {
		if !given && call.text(name) == "" {
			return 0, fmt.Errorf("it has no %s", name)
		}
		return call.size(name, defaultValue) - less, nil
	}, nil
}

// extents are the sizes of a matrix, by name.
var extents = map[string]func(call *Call, matrix *Matrix) int64{
	"rows":    func(_ *Call, matrix *Matrix) int64 { return matrix.Rows },
	"columns": func(_ *Call, matrix *Matrix) int64 { return matrix.Columns },
	"values":  func(_ *Call, matrix *Matrix) int64 { return matrix.Rows * matrix.Columns },
	"each":    func(call *Call, matrix *Matrix) int64 { return matrix.Rows / call.size("sequences", 1) },
}
