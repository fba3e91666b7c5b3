// Package interrupt ends commands after a signal: with their best answer if there is one, and with
// the status that shells use.
package interrupt

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Number syscall.Signal }

func (err SignalError) Error() string { return "interrupted" }

// Status returns the exit status of a command ended by the signal, as in a shell.
func (err SignalError) Status() int { return 128 + int(err.Number) }

// UntilSignal returns a context that the first SIGINT or SIGTERM ends. The second signal ends the
// process immediately.
func UntilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stop = func() { signal.Stop(signals) }
	go func() {
		got := <-signals
		stop()
		number, _ := got.(syscall.Signal)
		cancel(SignalError{number})
	}()
	return ctx, stop
}

// signalOf returns the signal that ended a context, if one did.
func signalOf(ctx context.Context) (SignalError, bool) {
	var by SignalError
	return by, ctx.Err() != nil && errors.As(context.Cause(ctx), &by)
}

// ownStatus lists the commands that keep their exit status after a signal: watch returns its
// command's.
var ownStatus = []string{"watch"}

// Status returns the exit status of a signal, if one came, instead of the command's. A printed
// answer is then the best one found so far.
func Status(ctx context.Context, command string, code int, problems io.Writer) int {
	by, came := signalOf(ctx)
	if !came || slices.Contains(ownStatus, command) {
		return code
	}
	if what, searched := interrupted[code]; searched && slices.Contains(searches, command) {
		out.Say(problems, "devmap: interrupted: %s\n", what) //nolint:errcheck // stderr is the last resort
	}
	return by.Status()
}

// interrupted maps an exit status to the state of the search.
var interrupted = map[int]string{
	out.ExitDone:       "the answer is the best found so far",
	out.ExitInfeasible: "the search had not ended, and a placement that was not tried may fit",
}

// searches lists the commands whose answer is weaker after an interrupt.
var searches = []string{"plan", "estimate"}

// leaves lists the commands that only compute, so that the process may end at any point.
var leaves = []string{"plan", "estimate", "check", "inspect", "emit", "simulate"}

// grace is the time that a command has to print its best answer after a signal.
const grace = 200 * time.Millisecond

var errNoAnswer = errors.New("interrupted: no answer was found so far")

// LeaveLate ends the process if a command that only computes has not started to write its result
// within the grace after a signal. leave reports that it has not ([out.Leave]).
// exit gets the status, and the error for people. Call done to stop.
func LeaveLate(ctx context.Context, command string, problems io.Writer, leave func() bool, exit func(status int, err error)) (done func()) {
	if !slices.Contains(leaves, command) {
		return func() {}
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		by, came := signalOf(ctx)
		if !came {
			return
		}
		select {
		case <-over:
			return
		case <-time.After(grace):
		}
		if leave() {
			out.Wipe(problems)
			out.Say(problems, "devmap: %v\n", errNoAnswer) //nolint:errcheck // stderr is the last resort
			exit(by.Status(), errNoAnswer)
		}
	})
	return func() { stop(); close(over) }
}

// Answered runs a function that may wait for a stuck driver. A signal ends the waiting, and the
// error then has the signal's status.
func Answered[T any](ctx context.Context, problems io.Writer, wait func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := wait()
		done <- answer{value, err}
	}()
	select {
	case found := <-done:
		return found.value, found.err
	case <-ctx.Done():
	}
	status := out.ExitError
	if by, came := signalOf(ctx); came {
		status = by.Status()
	}
	var none T
	if err := out.Say(problems, "devmap: interrupted: the GPUs had not answered yet, and COMMAND was not started\n"); err != nil {
		return none, err
	}
	return none, &out.ReportedError{Status: status}
}
