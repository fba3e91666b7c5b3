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

// grace is how long a worker may take to end once it is to.
const grace = 10 * time.Second

// Process is a worker, seen from its supervisor.
type Process struct {
	command *exec.Cmd
	says    *os.File
	life    *os.File
	grace   time.Duration
	slow    chan struct{} // closed where it had to be killed
	done    chan struct{}
}

// Start begins a worker: this program with other arguments; the first is not the
// program's name. It is to end with ctx, and is killed if it does not.
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

// inherited is the file behind a writer, where there is one: to a terminal the
// worker then writes as to its own, with progress and colours.
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

// Next is the worker's next message; io.EOF: it says nothing more.
func (process *Process) Next() (*Message, error) { return read(process.says) }

// Wait waits until the worker has ended, and says how: "exit status 1", "signal:
// killed".
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

// Slow reports that the worker was to end, did not within the time that it had for
// that, and was killed.
func (process *Process) Slow() bool {
	select {
	case <-process.slow:
		return true
	default:
		return false
	}
}

// ID is the system's number of the worker.
func (process *Process) ID() int { return process.command.Process.Pid }

// Kill ends the worker at once.
func (process *Process) Kill() error { return process.command.Process.Kill() }
