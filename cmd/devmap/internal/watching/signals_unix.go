//go:build unix

package watching

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

var watched = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Unbroken makes a write to a closed pipe fail, until done is called. The process must not end: it
// has a command to watch and a folder to remove. The command's handling of the signal does not
// change: programs do not inherit a caught signal, but they would inherit an ignored one.
func Unbroken() (done func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// typed reports a signal that a terminal sends to all processes in its foreground. This process and
// its child are among them.
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
