//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// TestInterruptedFIFO: waiting for a FIFO's other end stops with the command's context, which a
// signal cancels.
func TestInterruptedFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo, unread := filepath.Join(dir, "fifo"), filepath.Join(dir, "unread")
	for _, path := range []string{fifo, unread} { // readers of unread wait on
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
	}
	toy := filepath.Join("testdata", "toy.json")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	planned := plannedToy(t, "--gpus", "1")
	for _, args := range [][]string{
		{"check", toy, fifo},
		{"run", fifo},
		{"run", planned, "--weights", "random", "--tokens", fifo},
		{"plan", toy, "--topology", fifo},
		{"estimate", toy, "--topology", fifo},
		{"emit", fifo, "--for", "accelerate"},
		{"plan", toy, "--gpus", "2", "--mode", "load", "--json", "-o", unread},
	} {
		var document, problems bytes.Buffer
		if code := run(ctx, args, &document, &problems); code != out.ExitError || !strings.Contains(problems.String(), "interrupted while waiting") {
			t.Errorf("%v: status %d, %s", args, code, problems.String())
		}
	}
}

// TestTokensOnce: a file that can be read only once has ids for one plan.
func TestTokensOnce(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	planned := plannedToy(t, "--gpus", "1")
	var document, problems bytes.Buffer
	if code := run(t.Context(), []string{"run", planned, planned, "--weights", "random", "--tokens", fifo}, &document, &problems); code != out.ExitUsage || !strings.Contains(problems.String(), "2 plans would read it") {
		t.Errorf("status %d, %s", code, problems.String())
	}
}

// TestLateOutput: the answer is still written after an interrupted search or after its time limit,
// which ends the command's context and not the root's.
func TestLateOutput(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, interrupted := range []context.Context{context.Background(), ended} {
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Skip(err)
		}
		read := make(chan string, 1)
		go func() {
			got, _ := os.ReadFile(fifo) // the test fails below if nothing was read
			read <- string(got)
		}()
		root, cmd := &cobra.Command{}, &cobra.Command{}
		root.AddCommand(cmd)
		root.SetContext(interrupted)
		cmd.SetContext(ended)
		err := out.Write(cmd, fifo, func(w io.Writer) error { _, err := io.WriteString(w, "the plan"); return err })
		if err != nil {
			t.Fatalf("%v (%v)", err, interrupted.Err())
		}
		if got := <-read; got != "the plan" {
			t.Errorf("the reader got %q (%v)", got, interrupted.Err())
		}
	}
}

// TestResumeFIFO: a FIFO in place of the folder to read is refused, as opening it would wait for
// its other end.
func TestResumeFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	planned := plannedToy(t, "--gpus", "1")
	var document, problems bytes.Buffer
	if code := run(t.Context(), []string{"run", planned, "--resume", fifo}, &document, &problems); code != out.ExitError || !strings.Contains(problems.String(), "a FIFO: want a folder") {
		t.Errorf("status %d, %s", code, problems.String())
	}
}
