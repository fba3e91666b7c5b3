//go:build unix

package watch

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's Ctrl-C from a program that still has something to report.
func apart(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
