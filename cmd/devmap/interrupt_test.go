package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
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

// TestLastWord: with --json, an interrupt prints an error after it has claimed the end of the
// process. The claim holds for the rest of a process, and so a child makes it.
func TestLastWord(t *testing.T) {
	const mark = "TEST_LEAVES"
	if os.Getenv(mark) != "" {
		if out.Leave() {
			for _, args := range [][]string{{"plan", "--json"}, {"plan"}} {
				lastWord(os.Stdout, newRoot(worker.Self{}), args, 130, errors.New("interrupted: early"))
			}
		}
		os.Exit(0)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLastWord$")
	child.Env = append(os.Environ(), mark+"=1")
	document, err := child.Output()
	const want = `{"format_version":"devmap.error/v1","error":"interrupted:early","status":130,"remedies":[]}`
	if got := strings.Join(strings.Fields(string(document)), ""); err != nil || got != want {
		t.Errorf("%v: %s, want %s", err, got, want)
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
