package main

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// change is a small step that a user can take.
type change struct {
	what string
	work costmodel.Workload
}

// changes are the steps away from a workload that take memory away.
func changes(w costmodel.Workload) []change {
	if w.Mode == costmodel.Load {
		return nil
	}
	var out []change
	add := func(when bool, what string, edit func(*costmodel.Workload)) {
		if when {
			c := change{what, w}
			edit(&c.work)
			out = append(out, c)
		}
	}
	train := w.Mode == costmodel.Train
	add(train && w.Recompute == costmodel.RecomputeNone, "--recompute full",
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	add(train && w.Optimizer == costmodel.AdamW, "--optimizer adamw-8bit",
		func(w *costmodel.Workload) { w.Optimizer = costmodel.AdamW8bit })
	add(train && w.MicroBatches == 1 && w.Batch > 1, fmt.Sprintf("--micro-batches %d (gradient accumulation)", w.Batch),
		func(w *costmodel.Workload) { w.MicroBatches = w.Batch })
	add(w.Batch > 1, fmt.Sprintf("--batch %d", w.Batch/2),
		func(w *costmodel.Workload) { w.Batch, w.MicroBatches = w.Batch/2, 1 })
	const shortest = 512
	add(w.Seq > shortest, fmt.Sprintf("--seq %d", w.Seq/2),
		func(w *costmodel.Workload) { w.Seq, w.TargetSeq = w.Seq/2, w.TargetSeq/2 })
	return out
}
