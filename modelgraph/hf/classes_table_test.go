package hf

import (
	"errors"
	"io"
	"testing"
)

// TestFindClassCut: a class that a broken table does not reach is not said to
// be unknown to Transformers.
func TestFindClassCut(t *testing.T) {
	if _, ok, err := findClass("NoSuchModel", "none"); ok || err != nil {
		t.Fatalf("in the whole table: %t, %v", ok, err)
	}
	whole := classesGz
	defer func() { classesGz = whole }()
	classesGz = whole[:len(whole)/2]
	if _, ok, err := findClass("NoSuchModel", "none"); ok || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in half a table: %t, %v", ok, err)
	}
}
