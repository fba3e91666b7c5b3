package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// grace is how long a worker may take to end after the request.
const grace = 10 * time.Second

// Process is a worker, as its supervisor sees it.
type Process struct {
	command *exec.Cmd
	says    *os.File
	life    *os.File
	grace   time.Duration
	slow    chan struct{} // closed if it had to be killed
	done    chan struct{}
}

// Start starts a worker: this program with the given arguments, without the program's name. It must
// end with ctx, and is killed if it does not.
func Start(ctx context.Context, args []string, stdout, stderr io.Writer) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	says, saysEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	lifeEnd, life, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, says.Close(), saysEnd.Close())
	}
	process := &Process{says: says, life: life, grace: grace, slow: make(chan struct{}), done: make(chan struct{})}
	process.command = &exec.Cmd{
		Path: self, Args: append([]string{"devmap"}, args...), Env: append(os.Environ(), environment+"="+strconv.Itoa(os.Getpid())),
		Stdin: os.Stdin, Stdout: inherited(stdout), Stderr: inherited(stderr), ExtraFiles: []*os.File{saysEnd, lifeEnd}, // saysFile, lifeFile
	}
	err = errors.Join(process.command.Start(), saysEnd.Close(), lifeEnd.Close())
	if err != nil {
		return nil, errors.Join(err, says.Close(), life.Close())
	}
	go process.watch(ctx)
	return process, nil
}

// inherited returns the file behind a writer, if there is one. The worker then writes to a terminal
// directly, with progress and colours.
func inherited(writer io.Writer) io.Writer {
	if file := out.FileOf(writer); file != nil {
		return file
	}
	return writer
}

// watch ends the worker with the context.
func (process *Process) watch(ctx context.Context) {
	select {
	case <-process.done:
		return
	case <-ctx.Done():
	}
	process.life.Close() //nolint:errcheck // that it is closed is all there is to say
	select {
	case <-process.done:
	case <-time.After(process.grace):
		close(process.slow)
		process.command.Process.Kill() //nolint:errcheck // it ended meanwhile
	}
}

// Next returns the worker's next message; io.EOF: there is no more.
func (process *Process) Next() (*Message, error) { return read(process.says) }

// Wait waits until the worker has ended, and returns how: "exit status 1", "signal: killed".
func (process *Process) Wait() (how string, err error) {
	err = process.command.Wait()
	close(process.done)
	process.life.Close() //nolint:errcheck // it may be closed already
	process.says.Close() //nolint:errcheck // nothing is left in it
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return process.command.ProcessState.String(), nil
}

// Slow reports that the worker did not end in time after the request, and was killed.
func (process *Process) Slow() bool {
	select {
	case <-process.slow:
		return true
	default:
		return false
	}
}

// ID returns the worker's process number.
func (process *Process) ID() int { return process.command.Process.Pid }

// Kill ends the worker immediately.
func (process *Process) Kill() error { return process.command.Process.Kill() }
