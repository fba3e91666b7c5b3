package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// advice says, where one unit alone sets the peak, which it is and what would
// lower it, each tried out.
func advice(ctx context.Context, p planner.Problem, s *planner.Solution) []string {
	alone := s.Alone(&p)
	if alone == "" {
		return nil
	}
	d := &s.Devices[s.Bottleneck]
	out := []string{fmt.Sprintf("%s alone sets the peak: GPU %d holds %v (%s), and more GPUs will not lower it",
		alone, s.Bottleneck, costmodel.Bytes(d.Predicted.PeakAllocatedBytes), d.Predicted.PeakAt)}
	if n := p.FewerDevices(ctx, s); n > 0 {
		out = append(out, fmt.Sprintf("%d GPUs reach the same peak", n))
	}
	return append(out, tried(ctx, p, s.Value)...)
}

// remedies are changes under which an infeasible problem gets better, each
// tried out.
func remedies(ctx context.Context, p planner.Problem, inf *planner.InfeasibleError) []string {
	return tried(ctx, p, inf.Best.Value)
}

// tried plans again under small changes of the workload and tells those that
// lower the largest share.
func tried(ctx context.Context, p planner.Problem, value float64) []string {
	var out []string
	for _, c := range changes(p.Costs.Workload) {
		q := p
		t, err := costs(p.Graph, c.work)
		if err != nil {
			continue
		}
		q.Costs = t
		s, err := planner.Solve(ctx, q, planner.Settings{})
		var inf *planner.InfeasibleError
		if errors.As(err, &inf) {
			s = inf.Best
		} else if err != nil {
			continue
		}
		if s.Value < 0.995*value {
			fits := "fits"
			if s.Value > 1 {
				fits = "does not fit yet"
			}
			d := &s.Devices[s.Bottleneck]
			out = append(out, fmt.Sprintf("%s: largest GPU %v, %s", c.what, costmodel.Bytes(d.Predicted.PeakAllocatedBytes), fits))
		}
	}
	return out
}

type change struct {
	what string
	work costmodel.Workload
}

// changes are the small steps that a user can take.
func changes(w costmodel.Workload) []change {
	var out []change
	add := func(what string, edit func(*costmodel.Workload)) {
		c := change{what, w}
		edit(&c.work)
		out = append(out, c)
	}
	if w.Mode == costmodel.Load {
		return nil
	}
	if w.Mode == costmodel.Train && w.Recompute == costmodel.RecomputeNone {
		add("--recompute full", func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	}
	if w.Mode == costmodel.Train && w.Optimizer == costmodel.AdamW {
		add("--optimizer adamw-8bit", func(w *costmodel.Workload) { w.Optimizer = costmodel.AdamW8bit })
	}
	if w.Mode == costmodel.Train && w.MicroBatches == 1 && w.Batch > 1 {
		add(fmt.Sprintf("--micro-batches %d (gradient accumulation)", w.Batch), func(w *costmodel.Workload) { w.MicroBatches = w.Batch })
	}
	if w.Batch > 1 {
		add(fmt.Sprintf("--batch %d", w.Batch/2), func(w *costmodel.Workload) { w.Batch, w.MicroBatches = w.Batch/2, 1 })
	}
	if w.Seq > 512 {
		add(fmt.Sprintf("--seq %d", w.Seq/2), func(w *costmodel.Workload) {
			w.Seq, w.TargetSeq = w.Seq/2, w.TargetSeq/2
		})
	}
	return out
}
