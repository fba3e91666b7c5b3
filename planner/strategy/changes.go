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

// largestPool is the part of a GPU that OpenPI's README has JAX take where memory is
// short.
const largestPool = 0.9

const (
	accumulates = "gradient accumulation"
	freezes     = "the model itself frozen"
)

// edits are the single changes that take memory away, the least intrusive
// first: those that change no result, then the optimizer, then the work
// itself, then what is trained.
func (problem *search) edits() []edit {
	workload := problem.Workload
	if r, err := estimate.Resolve(problem.Graph, costmodel.Workload{Mode: workload.Mode, Seq: workload.Seq, Batch: workload.Batch}); err == nil {
		workload.Seq, workload.Batch = r.Seq, r.Batch // what the model takes where nothing was asked for
	}
	var out []edit
	add := func(when bool, note string, apply func(*costmodel.Workload)) {
		if when {
			out = append(out, edit{note, apply})
		}
	}
	train := workload.Mode == costmodel.Train
	if workload.Mode == costmodel.Load {
		return nil
	}
	if _, program := estimate.Native(nil); workload.Runtime == program {
		add(workload.MemFraction < largestPool, "", func(w *costmodel.Workload) { w.MemFraction = largestPool })
		train = false // what is recomputed and trained is the program's own
	}
	add(train && workload.Strategy.Traits().Staged && workload.DP.Count()*workload.TP.Count() > 1, "",
		func(w *costmodel.Workload) { w.DP, w.TP = costmodel.AutoDegree, costmodel.AutoDegree })
	add(train && cmp.Or(workload.Recompute, costmodel.RecomputeNone) == costmodel.RecomputeNone, "",
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	add(train && max(1, workload.MicroBatches) == 1 && workload.Batch > 1, accumulates,
		func(to *costmodel.Workload) { to.MicroBatches = workload.Batch })
	add(train && cmp.Or(workload.Optimizer, costmodel.AdamW) == costmodel.AdamW && workload.LoRARank == 0, "",
		func(w *costmodel.Workload) { w.Optimizer = "adamw-8bit" })
	out = append(out, smallerBatches(workload.Batch)...)
	const shortest = 512
	seq := workload.Seq / 2
	add(workload.Seq > shortest, "",
		func(w *costmodel.Workload) { w.Seq, w.TargetSeq = seq, w.TargetSeq/2 })
	add(train && workload.LoRARank == 0, freezes,
		func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = loraRank, []string{loraTargets} })
	return out
}

// smallerBatches are halves of a batch, the largest first, in as many
// micro-batches as divide them, no more than were asked for.
func smallerBatches(batch int64) []edit {
	var out []edit
	for half := batch / 2; half >= 1; half /= 2 {
		out = append(out, edit{apply: func(w *costmodel.Workload) {
			w.Batch, w.MicroBatches = half, min(w.MicroBatches, half)
			for w.MicroBatches > 0 && half%w.MicroBatches != 0 {
				w.MicroBatches--
			}
		}})
	}
	return out
}

func changesBatch(change *edit) bool {
	workload := costmodel.Workload{Batch: -1}
	change.apply(&workload)
	return workload.Batch != -1
}

func changesTraining(change *edit) bool {
	var workload costmodel.Workload
	change.apply(&workload)
	return workload.LoRARank > 0
}

// edited is the problem with a changed workload.
func (problem *search) edited(es ...edit) *search {
	changed := *problem
	changed.notes = slices.Clone(problem.notes)
	for _, change := range es {
		change.apply(&changed.Workload)
		if change.note != "" {
			changed.notes = append(changed.notes, change.note)
		}
	}
	return &changed
}

// first is the best row that is answered; false where none is, or the time is
// over.
func (problem *search) first(ctx context.Context) (Row, bool) {
	if problem == nil || ctx.Err() != nil {
		return Row{}, false
	}
	rows, _ := rowsOf(ctx, &problem.comparison) // a row that failed is refused
	for _, row := range rows {
		if row.Refused == nil {
			return row, true
		}
	}
	return Row{}, false
}
