//go:build !unix

package watch

import "os/exec"

// apart does nothing: these systems have no process groups.
func apart(*exec.Cmd) {}
