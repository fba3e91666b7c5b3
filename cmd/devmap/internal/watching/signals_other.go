//go:build !unix

package watching

import "os"

var watched = []os.Signal{os.Interrupt}

// typed: a console sends it to all processes that are attached to it.
func typed(os.Signal) bool { return true }
