package interrupt_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/interrupt"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// signalled returns a context that a signal has ended.
func signalled(number syscall.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interrupt.SignalError{Number: number})
	return ctx
}

// TestStatus: after a signal, the status is the signal's for any command, except for watch, which
// has its command's status.
func TestStatus(t *testing.T) {
	var problems bytes.Buffer
	for command, want := range map[string]int{"plan": 130, "run": 130, "watch": 7} {
		if code := interrupt.Status(signalled(syscall.SIGINT), command, 7, &problems); code != want || problems.Len() > 0 {
			t.Errorf("%s ends with %d, not %d, %s", command, code, want, problems.String())
		}
	}
	if code := interrupt.Status(t.Context(), "plan", 3, &problems); code != 3 {
		t.Errorf("without a signal: %d", code)
	}
}

// TestLeaveLate: a command that only computes ends after a signal, even if it never checks its
// context. A command that moves bytes on GPUs does not.
func TestLeaveLate(t *testing.T) {
	ended := make(chan int, 1)
	var why error
	var problems bytes.Buffer
	done := interrupt.LeaveLate(signalled(syscall.SIGINT), "plan", &problems, func() bool { return true }, func(status int, err error) { why = err; ended <- status })
	if status := <-ended; status != 130 || problems.String() != "devmap: interrupted: no answer was found so far\n" || why == nil || why.Error() != "interrupted: no answer was found so far" {
		t.Errorf("status %d, %v, %s", status, why, problems.String())
	}
	done()
	done = interrupt.LeaveLate(signalled(syscall.SIGINT), "run", &problems, func() bool { return true }, func(int, error) { t.Error("run ends before it has released its memory") })
	done()
}

// TestAnswered: after a signal, nothing waits for a call that never returns.
func TestAnswered(t *testing.T) {
	var problems bytes.Buffer
	stuck := make(chan struct{})
	defer close(stuck)
	_, err := interrupt.Answered(signalled(syscall.SIGINT), &problems, func() (int, error) { <-stuck; return 0, nil })
	var reported *out.ReportedError
	if !errors.As(err, &reported) || reported.Status != 130 || !strings.Contains(problems.String(), "COMMAND was not started") {
		t.Errorf("%v, %s", err, problems.String())
	}
}
