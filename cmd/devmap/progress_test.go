package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// heard passes on what is written, so that a test can wait for it.
type heard chan string

func (h heard) Write(b []byte) (int, error) {
	h <- string(b)
	return len(b), nil
}

// TestPaint: what was said last is drawn, again and again though nothing new
// is said, and nothing more once it is done.
func TestPaint(_ *testing.T) {
	out := make(heard, 1000)
	say, done := paint(out, time.Millisecond)
	say("placing: bound 3")
	for seen := 0; seen < 3; {
		if strings.Contains(<-out, "placing: bound 3") {
			seen++
		}
	}
	say("placing: bound 4")
	for !strings.Contains(<-out, "placing: bound 4") {
		continue
	}
	done()
	close(out) // a write after the end would panic
}

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
		var out, errs bytes.Buffer
		if code := run(over, append([]string{"plan"}, args...), &out, &errs); code != exitDone {
			t.Errorf("%v: exit status %d: %s", args, code, errs.String())
		}
		if !strings.Contains(errs.String(), "limit reached") || out.Len() == 0 {
			t.Errorf("%v: %s", args, errs.String())
		}
	}
}
