package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// TestCommandError: the text and the status of runs that fail.
func TestCommandError(t *testing.T) {
	t.Parallel()
	one := &planRun{file: "plan.json", job: &compiled{Job: executor.Job{Program: &program.Program{Devices: []program.Device{{ID: 3, Arena: 5 << 20}}}}}}
	for name, is := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"interrupted": {fmt.Errorf("step 3: %w", context.Canceled), 1, "devmap: running plan.json: interrupted: no file was written\n"},
		"a hang": {
			&executor.HangError{After: 30 * time.Second, State: "device 0, compute: 1 of 3\ndevice 0, to1: 0 of 2"}, 1,
			"devmap: running plan.json: nothing ended on any GPU for 30s:\ndevice 0, compute: 1 of 3\ndevice 0, to1: 0 of 2\n",
		},
		"no memory": {fmt.Errorf("cuMemCreate: %w", executor.ErrMemory), 3, "devmap: running plan.json: cuMemCreate: out of memory (GPU 3: 5.0 MiB)\n"},
		"another":   {errors.New("a path\nis corrupted"), 1, "devmap: running plan.json: a path\\u000ais corrupted\n"},
	} {
		var stderr bytes.Buffer
		if status := out.Report(&stderr, one.commandError(is.err), ask.ErrorText); status != is.status || stderr.String() != is.want {
			t.Errorf("%s: status %d, %q, want %d and %q", name, status, stderr.String(), is.status, is.want)
		}
	}
}

// TestStallLimit: the limit is many times the slowest instruction's time, and at least half a
// minute.
func TestStallLimit(t *testing.T) {
	t.Parallel()
	for picoseconds, want := range map[int64]time.Duration{
		0: 30 * time.Second, 1e12: 30 * time.Second, 3e12: time.Minute, 1<<62 - 1: 20 * 24 * time.Hour,
	} {
		of := &program.Program{Instrs: []program.Instr{{Ticks: picoseconds / 2}, {Ticks: picoseconds}, {}}}
		if got := stallLimit(of); got != want {
			t.Errorf("%d ps: %v, want %v", picoseconds, got, want)
		}
	}
}
