package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// signalled is a context that a signal has ended.
func signalled(number syscall.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(signalError{number})
	return ctx
}

// TestInterrupted: a search that a signal ends still writes its best answer,
// and ends with the signal's status.
func TestInterrupted(t *testing.T) {
	toy := filepath.Join("testdata", "toy.json")
	for number, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		var document, problems bytes.Buffer
		code := run(signalled(number), []string{"plan", toy, "--gpus", "2", "--mode", "load"}, &document, &problems)
		if code != want || !strings.Contains(document.String(), "devmap.plan/v1") || !strings.Contains(problems.String(), "devmap: interrupted: the answer is the best found so far\n") {
			t.Errorf("%v: status %d, %s\n%s", number, code, problems.String(), document.String())
		}
	}
	var document, problems bytes.Buffer
	if code := run(signalled(syscall.SIGINT), []string{"check", toy, "nowhere.json"}, &document, &problems); code != 130 || strings.Contains(problems.String(), "best") {
		t.Errorf("status %d, %s", code, problems.String())
	}
	if code := afterSignal(signalled(syscall.SIGINT), "watch", 7, &problems); code != 7 {
		t.Errorf("watch ends with %d in place of its command's status", code)
	}
}

// TestLeaveLate: a command that only computes and is interrupted ends although
// it never looks at its context; one that moves bytes on GPUs does not.
func TestLeaveLate(t *testing.T) {
	ended := make(chan int, 1)
	var problems bytes.Buffer
	done := leaveLate(signalled(syscall.SIGINT), "plan", &problems, func() bool { return true }, func(status int) { ended <- status })
	if status := <-ended; status != 130 || problems.String() != "devmap: interrupted: no answer was found so far\n" {
		t.Errorf("status %d, %s", status, problems.String())
	}
	done()
	defer leaveLate(signalled(syscall.SIGINT), "run", &problems, func() bool { return true }, func(int) { t.Error("run ends before it has given its memory back") })()
}

// TestUntilInterrupted: what never answers is not waited for after a signal.
func TestUntilInterrupted(t *testing.T) {
	var problems bytes.Buffer
	stuck := make(chan struct{})
	defer close(stuck)
	_, err := untilInterrupted(signalled(syscall.SIGINT), &problems, func() (int, error) { <-stuck; return 0, nil })
	var told *out.ToldError
	if !errors.As(err, &told) || told.Status != 130 || !strings.Contains(problems.String(), "COMMAND was not started") {
		t.Errorf("%v, %s", err, problems.String())
	}
}
