package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/interrupt"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

// signalled returns a context that a signal has ended.
func signalled(number syscall.Signal) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interrupt.SignalError{Number: number})
	return ctx
}

// TestInterrupted: a search that a signal ends still writes its best answer, and ends with the
// signal's status.
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
}

// TestLastWord: an interrupt and the command that it ends print one error together, with --json.
func TestLastWord(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "--json"}, `{"format_version":"devmap.error/v1","error":"interrupted: early","status":130,"remedies":[]}`},
		{[]string{"plan"}, ""},
	} {
		var document bytes.Buffer
		last := lastWord{args: test.args, results: out.NewResults(&document)}
		last.say(newRoot(worker.Self{}), 130, errors.New("interrupted: early"))
		last.say(newRoot(worker.Self{}), 1, errors.New("late"))
		if err := last.results.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(document.String()), ""); got != strings.ReplaceAll(test.want, " ", "") {
			t.Errorf("%v: %s, want %s", test.args, got, test.want)
		}
	}
}

// TestInterruptedMiss: if a signal ended the search, an answer that does not fit is no proof, and
// the text says so.
func TestInterruptedMiss(t *testing.T) {
	toy := filepath.Join("testdata", "toy.json")
	for _, command := range []string{"plan", "estimate"} {
		var document, problems bytes.Buffer
		code := run(signalled(syscall.SIGINT), []string{command, toy, "--gpus", "1MiB,1MiB", "--reserve", "0", "--mode", "load"}, &document, &problems)
		if code != 130 || !strings.Contains(problems.String(), "devmap: interrupted: the search had not ended, and a placement that was not tried may fit\n") {
			t.Errorf("%s: status %d\n%s", command, code, problems.String())
		}
		if strings.Contains(problems.String(), "nothing fits on") {
			t.Errorf("%s claims that nothing fits:\n%s", command, problems.String())
		}
	}
}
