package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// TestPosedInterrupted: a posed problem whose search is interrupted before it
// begins is answered all the same, with exit status 0.
func TestPosedInterrupted(t *testing.T) {
	over, stop := context.WithCancel(t.Context())
	stop()
	dir := filepath.Join("..", "..", "fixtures", "workloads")
	for _, args := range [][]string{
		{filepath.Join(dir, "dnn-partitioning", "throughput", "LayerGraphs", "gnmt_training.json")},
		{filepath.Join(dir, "dnn-partitioning", "throughput", "LayerGraphs", "gnmt_training.json"), "--contiguous=false"},
		{filepath.Join(dir, "piper", "bert32a100.json")},
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
