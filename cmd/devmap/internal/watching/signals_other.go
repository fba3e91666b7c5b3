//go:build !unix

package watching

import "os"

var watched = []os.Signal{os.Interrupt}

// Unbroken does nothing: a write to a pipe that no one reads fails here in any case.
func Unbroken() (done func()) { return func() {} }

// typed: a console sends it to all processes that are attached to it.
func typed(os.Signal) bool { return true }
