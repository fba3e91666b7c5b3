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

// TestInterruptedFIFO: a FIFO without another end ends with the command's
// context, which a signal cancels.
func TestInterruptedFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo, unread := filepath.Join(dir, "fifo"), filepath.Join(dir, "unread")
	for _, path := range []string{fifo, unread} { // those that wait to read go on waiting
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

// TestTokensOnce: what can be read once has ids for one plan.
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

// TestLateOutput: the answer of a search that was interrupted, or whose time
// ended (that is the command's context and not its root's), is still written.
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
			got, _ := os.ReadFile(fifo) // what was not read is missed below
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

// TestResumeFIFO: a folder that is to be read and is a FIFO is refused, as its
// other end would be waited for.
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
