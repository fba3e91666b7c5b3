//go:build unix

package watch

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's Ctrl-C from a program that is still to tell something.
func apart(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
