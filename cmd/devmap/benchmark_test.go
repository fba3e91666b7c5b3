package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
)

// TestBenchmarkInterrupted: a benchmark whose context has ended before its search still has an
// answer, with exit status 0.
func TestBenchmarkInterrupted(t *testing.T) {
	over, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join("..", "..", "fixtures", "workloads")
	for _, args := range [][]string{
		{filepath.Join(dir, "dnn-partitioning", "throughput", "LayerGraphs", "gnmt_training.json")},
		{filepath.Join(dir, "piper", "bert32a100.json")},
		{filepath.Join(dir, "piper", "gnmt.json"), "--dp", "auto"},
	} {
		if _, err := os.Stat(args[0]); err != nil {
			t.Fatal(err)
		}
		var document, errs bytes.Buffer
		if code := run(over, append([]string{"plan"}, args...), &document, &errs); code != out.ExitDone {
			t.Errorf("%v: exit status %d: %s", args, code, errs.String())
		}
		if !strings.Contains(errs.String(), "limit reached") || document.Len() == 0 {
			t.Errorf("%v: %s", args, errs.String())
		}
	}
}

// TestBenchmarkDegrees: a Piper file's stages take the given degrees, or the file's own. Other
// files take none.
func TestBenchmarkDegrees(t *testing.T) {
	dir := filepath.Join("..", "..", "fixtures", "workloads")
	bert, dnn := filepath.Join(dir, "piper", "bert32a100.json"), filepath.Join(dir, "dnn-partitioning", "throughput", "LayerGraphs", "gnmt_training.json")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{bert, "--dp", "auto", "--tp", "auto"}, out.ExitDone, "stage 0, 10 × 1"},
		{[]string{bert, "--dp", "2", "--tp", "2"}, out.ExitDone, "stage 1, 2 × 2"},
		{[]string{bert, "--dp", "1", "--tp", "1"}, out.ExitDone, "stage 9 "},
		{[]string{bert, "--dp", "4", "--tp", "4"}, out.ExitError, "a stage of 4 × 4 devices is more than the 10 that there are"},
		{[]string{bert, "--dp", "7"}, out.ExitError, "7 replicas of a stage do not share the 1920"},
		{[]string{dnn, "--tp", "2"}, out.ExitUsage, "neither replicated nor tensor-parallel"},
	} {
		var document, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"plan"}, c.args...), &document, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit status %d: %s; want %d, %s", c.args, code, errs.String(), c.code, c.says)
		}
	}
}

// TestReplayCommand replays a log of allocations from standard input and from a file.
func TestReplayCommand(t *testing.T) {
	const log = `{"format_version": "devmap.allocations/v1", "devices": 1, "events": [[1,0,11534336],[-1]]}`
	path := filepath.Join(t.TempDir(), "log.json")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, "-"} {
		root := newRoot(worker.Self{})
		var said bytes.Buffer
		root.SetIn(strings.NewReader(log))
		root.SetOut(&said)
		root.SetArgs([]string{"replay", file})
		if err := root.Execute(); err != nil || !strings.Contains(said.String(), `"peak_allocated_bytes": 12582912`) {
			t.Errorf("%s: %v, %s", file, err, said.String())
		}
	}
	root := newRoot(worker.Self{})
	root.SetIn(strings.NewReader(strings.Replace(log, "[-1]", "[-2]", 1)))
	root.SetOut(io.Discard)
	root.SetArgs([]string{"replay", "-"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "standard input") || !strings.Contains(err.Error(), "events[1]") {
		t.Errorf("a tensor that was not made: %v", err)
	}
}
