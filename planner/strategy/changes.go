package strategy

import (
	"cmp"
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// edit is a change of a workload.
type edit struct {
	note  string // what the settings do not say
	apply func(*costmodel.Workload)
}

// loraRank and loraTargets are a usual choice; PEFT takes the latter for all
// linear layers but the head.
const (
	loraRank    = 16
	loraTargets = "all-linear"
)

const (
	accumulates = "gradient accumulation"
	freezes     = "the model itself frozen"
)

// edits are the single changes that take memory away, the least intrusive
// first: those that change no result, then the optimizer, then the work
// itself, then what is trained.
func (p *Problem) edits() []edit {
	w := p.Workload
	if r, err := estimate.Resolve(p.Graph, costmodel.Workload{Mode: w.Mode, Seq: w.Seq, Batch: w.Batch}); err == nil {
		w.Seq, w.Batch = r.Seq, r.Batch // what the model takes where nothing was asked for
	}
	var out []edit
	add := func(when bool, note string, apply func(*costmodel.Workload)) {
		if when {
			out = append(out, edit{note, apply})
		}
	}
	train := w.Mode == costmodel.Train
	if w.Mode == costmodel.Load {
		return nil
	}
	add(train && cmp.Or(w.Recompute, costmodel.RecomputeNone) == costmodel.RecomputeNone, "",
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	add(train && max(1, w.MicroBatches) == 1 && w.Batch > 1, accumulates,
		func(to *costmodel.Workload) { to.MicroBatches = w.Batch })
	add(train && cmp.Or(w.Optimizer, costmodel.AdamW) == costmodel.AdamW && w.LoRARank == 0, "",
		func(w *costmodel.Workload) { w.Optimizer = costmodel.AdamW8bit })
	for b := w.Batch / 2; b >= 1; b /= 2 {
		add(true, "", func(w *costmodel.Workload) {
			w.Batch, w.MicroBatches = b, min(w.MicroBatches, b)
			for w.MicroBatches > 0 && b%w.MicroBatches != 0 {
				w.MicroBatches--
			}
		})
	}
	const shortest = 512
	seq := w.Seq / 2
	add(w.Seq > shortest, "",
		func(w *costmodel.Workload) { w.Seq, w.TargetSeq = seq, w.TargetSeq/2 })
	add(train && w.LoRARank == 0, freezes,
		func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = loraRank, []string{loraTargets} })
	return out
}

func changesBatch(e *edit) bool {
	w := costmodel.Workload{Batch: -1}
	e.apply(&w)
	return w.Batch != -1
}

func changesTraining(e *edit) bool {
	var w costmodel.Workload
	e.apply(&w)
	return w.LoRARank > 0
}

// edited is the problem with a changed workload.
func (p *Problem) edited(es ...edit) *Problem {
	q := *p
	q.notes = slices.Clone(p.notes)
	for _, e := range es {
		e.apply(&q.Workload)
		if e.note != "" {
			q.notes = append(q.notes, e.note)
		}
	}
	return &q
}

// first is the best row that is answered; false where none is, or the time is
// over.
func (p *Problem) first(ctx context.Context) (Row, bool) {
	if p == nil || ctx.Err() != nil {
		return Row{}, false
	}
	for _, r := range Rows(ctx, p) {
		if r.Refused == nil {
			return r, true
		}
	}
	return Row{}, false
}
