//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// Scripts with these commands are skipped here.
func fakeSMI() {}
func hold()    {}

func terminal(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("a terminal is made on Linux only")
}
