//go:build !unix

package watching

import "os"

var watched = []os.Signal{os.Interrupt}

// Unbroken does nothing: on this system, a write to a closed pipe always fails.
func Unbroken() (done func()) { return func() {} }

// typed is true: a console sends signals to all attached processes.
func typed(os.Signal) bool { return true }
