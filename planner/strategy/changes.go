package strategy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// Change is a step away from a problem, and the row that it leads to.
type Change struct {
	What string // as flags of `devmap plan`, with a word on them
	Row  Row
}

// edit is a change of a workload.
type edit struct {
	what  string
	apply func(*costmodel.Workload)
}

// loraRank and loraTargets are a usual choice; PEFT takes the latter for all
// linear layers but the head.
const (
	loraRank    = 16
	loraTargets = "all-linear"
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
	add := func(when bool, what string, apply func(*costmodel.Workload)) {
		if when {
			out = append(out, edit{what, apply})
		}
	}
	train := w.Mode == costmodel.Train
	micro := max(1, w.MicroBatches)
	if w.Mode == costmodel.Load {
		return nil
	}
	add(train && cmp.Or(w.Recompute, costmodel.RecomputeNone) == costmodel.RecomputeNone, "--recompute full",
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	add(train && micro == 1 && w.Batch > 1, fmt.Sprintf("--micro-batches %d (gradient accumulation)", w.Batch),
		func(w *costmodel.Workload) { w.MicroBatches = w.Batch })
	add(train && cmp.Or(w.Optimizer, costmodel.AdamW) == costmodel.AdamW && w.LoRARank == 0, "--optimizer adamw-8bit",
		func(w *costmodel.Workload) { w.Optimizer = costmodel.AdamW8bit })
	for b := w.Batch / 2; b >= 1; b /= 2 {
		add(true, fmt.Sprintf("--batch %d", b), func(w *costmodel.Workload) {
			w.Batch, w.MicroBatches = b, max(1, min(w.MicroBatches, b))
			for w.Batch%w.MicroBatches != 0 {
				w.MicroBatches--
			}
		})
	}
	const shortest = 512
	seq := w.Seq / 2
	add(w.Seq > shortest, fmt.Sprintf("--seq %d", seq),
		func(w *costmodel.Workload) { w.Seq, w.TargetSeq = seq, w.TargetSeq/2 })
	add(train && w.LoRARank == 0, fmt.Sprintf("--lora-rank %d --lora-targets %s (the model itself frozen)", loraRank, loraTargets),
		func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = loraRank, []string{loraTargets} })
	return out
}

// Tried are the single changes that lower the largest share below value,
// whether they fit or not, of the same training: no adapters in its place. Of
// several batches the first is told.
func Tried(ctx context.Context, p *Problem, value float64) []Change {
	var out []Change
	batches := false
	for _, e := range p.edits() {
		batch := changesBatch(&e)
		if batch && batches || changesTraining(&e) {
			continue
		}
		if r, ok := p.edited(ctx, e); ok && r.Solution.Value < 0.995*value {
			out = append(out, Change{e.what, r})
			batches = batches || batch
		}
	}
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

// edited is the best row of a changed problem; false where none is answered,
// or the time is over.
func (p *Problem) edited(ctx context.Context, es ...edit) (Row, bool) {
	if ctx.Err() != nil {
		return Row{}, false
	}
	q := *p
	for _, e := range es {
		e.apply(&q.Workload)
	}
	for _, r := range Rows(ctx, &q) {
		if r.Refused == nil {
			return r, true
		}
	}
	return Row{}, false
}
