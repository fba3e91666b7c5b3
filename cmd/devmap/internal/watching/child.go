// Package watching runs a user's command as a shell would, monitors GPUs meanwhile, and shows their
// memory.
package watching

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// A shell's exit statuses for a command that it cannot run or does not find, and the number that it
// adds to a signal's (POSIX.1-2017, 2.8.2).
const (
	cannotRun = 126
	notFound  = 127
	signalled = 128
)

// StartError is a command that could not be started.
type StartError struct {
	Status int // as in a shell
	err    error
}

func (err *StartError) Error() string { return err.err.Error() }
func (err *StartError) Unwrap() error { return err.err }

// Child is the command.
type Child struct {
	command *exec.Cmd
	started chan struct{} // closed after the start
}

// Find looks up a command without starting it. Its first word is looked up in PATH, as in a shell.
func Find(argv []string) (*Child, error) {
	path, err := exec.LookPath(argv[0])
	if err == nil || errors.Is(err, exec.ErrDot) { // PATH has the current folder on purpose
		return &Child{&exec.Cmd{Path: path, Args: argv}, make(chan struct{})}, nil
	}
	return nil, startError(argv[0], err)
}

func startError(name string, err error) error {
	status := cannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = notFound
	}
	var find *exec.Error
	var path *fs.PathError
	if errors.As(err, &find) {
		err = find.Err
	}
	if errors.As(err, &path) {
		err = path.Err
	}
	return &StartError{status, fmt.Errorf("starting %q: %w", name, err)}
}

// Start starts the command with this process's stdin, and the given stdout and stderr.
func (child *Child) Start(environment []string, stdout, stderr io.Writer) error {
	child.command.Env, child.command.Stdin = environment, os.Stdin
	child.command.Stdout, child.command.Stderr = file(stdout), file(stderr)
	if err := child.command.Start(); err != nil {
		return startError(child.command.Args[0], err)
	}
	close(child.started)
	return nil
}

// file returns the file behind a stream, so that the command writes to a terminal directly.
func file(writer io.Writer) io.Writer {
	if file := out.FileOf(writer); file != nil {
		return file
	}
	return writer
}

// ID returns the command's process number.
func (child *Child) ID() int { return child.command.Process.Pid }

// Signal sends a signal to the command, which may have ended.
func (child *Child) Signal(signal os.Signal) {
	child.command.Process.Signal(signal) //nolint:errcheck // it ended meanwhile
}

// Kill ends the command immediately.
func (child *Child) Kill() { child.Signal(os.Kill) }

// Wait waits until the command has ended. It returns a shell's exit status, and the system's
// description.
func (child *Child) Wait() (status int, how string, err error) {
	err = child.command.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, "", err
	}
	state := child.command.ProcessState
	status = state.ExitCode()
	if waited, ok := state.Sys().(syscall.WaitStatus); ok && waited.Signaled() {
		status = signalled + int(waited.Signal())
	}
	return status, state.String(), nil
}
