//go:build unix

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptedFIFO: a FIFO without another end ends with the command's
// context, which a signal cancels.
func TestInterruptedFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	toy := filepath.Join("testdata", "toy.json")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"check", toy, fifo},
		{"plan", toy, "--topology", fifo},
		{"estimate", toy, "--topology", fifo},
		{"emit", fifo, "--for", "accelerate"},
		{"plan", toy, "--gpus", "2", "--mode", "load", "--json", "-o", fifo},
	} {
		var out, problems bytes.Buffer
		if code := run(ctx, args, &out, &problems); code != exitError || !strings.Contains(problems.String(), "interrupted while waiting") {
			t.Errorf("%v: status %d, %s", args, code, problems.String())
		}
	}
}
