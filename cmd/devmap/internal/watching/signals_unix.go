//go:build unix

package watching

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var watched = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// typed reports a signal that a terminal sends to all processes in its foreground, of
// which this and its child are.
func typed(one os.Signal) bool {
	if one == syscall.SIGTERM {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close() //nolint:errcheck // nothing was written
	front, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}
