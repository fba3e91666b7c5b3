package strategy

import (
	"cmp"
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
)

type edit struct {
	note  string // changes that no setting has
	apply func(*costmodel.Workload)
	// family names edits that replace each other, such as halves of a batch: only the first that
	// fits is reported.
	family string
}

// loraRank and loraTargets are usual; PEFT's "all-linear" is all linear layers except the head.
const (
	loraRank    = 16
	loraTargets = "all-linear"
)

// largestPool is the share of a GPU for JAX that OpenPI's README sets if memory is short.
const largestPool = 0.9

const (
	accumulates = "gradient accumulation"
	freezes     = "the model itself frozen"
	lastLogits  = "logits of the last position alone"
	lastSamples = "metrics from the loss alone"
)

// The values of the field loss.
const (
	eagerLoss   = "eager"
	chunkedLoss = "chunked"
)

// edits are the single changes that save memory, the least intrusive first: same results, then the
// optimizer's state, then the trained parameters, then less work.
func (problem *search) edits() []edit {
	workload := problem.sized()
	if workload.Mode == costmodel.Load {
		return nil
	}
	var out []edit
	if _, program := estimate.Native(nil); workload.Runtime == program { // it trains and recomputes in its own way
		if workload.MemFraction < largestPool {
			out = append(out, edit{apply: func(w *costmodel.Workload) { w.MemFraction = largestPool }})
		}
	} else {
		out = append(same(&workload), trained(&workload)...)
	}
	return slices.Concat(out, smallerBatches(workload.Batch), shorterSequences(problem.Graph, workload.Seq))
}

// sized is the workload with the model's default batch and length if none were given.
func (problem *search) sized() costmodel.Workload {
	workload := problem.Workload
	asked := costmodel.Workload{Mode: workload.Mode, Seq: workload.Seq, Batch: workload.Batch, NewTokens: workload.NewTokens}
	if resolved, err := estimate.Resolve(problem.Graph, asked); err == nil {
		workload.Seq, workload.Batch = resolved.Seq, resolved.Batch
	}
	if grid := workload.Runtime == "megatron" || workload.Runtime == "torchtitan"; grid && workload.DP == 0 { // the remaining GPUs
		workload.DP = costmodel.Degree(max(1, problem.gpus()/(workload.TP.Count()*workload.CP.Count()*workload.PP.Count())))
	}
	return workload
}

// same are the edits that keep the results.
func same(workload *costmodel.Workload) []edit {
	var out []edit
	add := func(when bool, note string, apply func(*costmodel.Workload)) {
		if when {
			out = append(out, edit{note: note, apply: apply})
		}
	}
	if workload.Mode != costmodel.Train {
		add(workload.NewTokens == 0, lastLogits, func(w *costmodel.Workload) { w.NewTokens = 1 })
		return out
	}
	add(workload.Strategy.Traits().Staged && workload.DP.Count()*workload.TP.Count() > 1, "", func(w *costmodel.Workload) {
		if workload.DP != costmodel.AutoDegree { // open replicas share the batch of the step
			w.Batch = workload.Batch * workload.DP.Count()
		}
		w.DP, w.TP = costmodel.AutoDegree, costmodel.AutoDegree
	})
	add(workload.Runtime == "megatron" && !workload.SequenceParallel && (workload.TP == costmodel.AutoDegree || workload.TP.Count() > 1), "",
		func(w *costmodel.Workload) { w.SequenceParallel = true })
	add(slices.Contains([]string{"", costmodel.RecomputeNone, "selective"}, workload.Recompute) || workload.ListsRecomputed(), "",
		func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull })
	add(workload.ListsRecomputed(), "", func(w *costmodel.Workload) { w.Recompute = "auto" })
	moves := workload.Runtime == costmodel.Devmap && workload.Strategy.Traits().Staged && workload.OffloadActivations != "auto"
	add(moves, "", func(w *costmodel.Workload) { w.OffloadActivations = "auto" })
	add(moves && workload.OffloadActivations != costmodel.OffloadAll, "", func(w *costmodel.Workload) { w.OffloadActivations = costmodel.OffloadAll })
	add(workload.BuiltOn == "gpu", "", func(w *costmodel.Workload) { w.BuiltOn = "cpu" })
	add(workload.EvalBatch > 1, "", func(w *costmodel.Workload) { w.EvalBatch = 1 })
	add(workload.EvalSamples > 0, lastSamples, func(w *costmodel.Workload) { w.EvalSamples = 0 })
	note := accumulates
	if workload.Strategy.Traits().Staged { // the stages pass its micro-batches on too
		note = ""
	}
	add(max(1, workload.MicroBatches) < workload.Batch, note,
		func(to *costmodel.Workload) { to.MicroBatches = workload.Batch })
	add(cmp.Or(workload.Loss, eagerLoss) == eagerLoss, "",
		func(w *costmodel.Workload) { w.Loss = chunkedLoss })
	return out
}

// trained are the edits of the optimizer's state and of the trained parameters.
func trained(workload *costmodel.Workload) []edit {
	var out []edit
	if workload.Mode != costmodel.Train || workload.LoRARank > 0 {
		return nil
	}
	if cmp.Or(workload.Optimizer, costmodel.AdamW) == costmodel.AdamW {
		out = append(out, edit{apply: func(w *costmodel.Workload) { w.Optimizer = "adamw-8bit" }})
	}
	return append(out, edit{note: freezes, apply: adapters})
}

func adapters(workload *costmodel.Workload) {
	workload.LoRARank, workload.LoRATargets = loraRank, []string{loraTargets}
}

// smallerBatches are halves of a batch, the largest first, in as many micro-batches as divide them,
// no more than were asked for.
func smallerBatches(batch int64) []edit {
	var out []edit
	for half := batch / 2; half >= 1; half /= 2 {
		out = append(out, edit{family: "batch", apply: func(w *costmodel.Workload) { setBatch(w, half) }})
	}
	return out
}

// setBatch gives a workload a batch in no more micro-batches than it has, as many as divide it.
func setBatch(workload *costmodel.Workload, batch int64) {
	workload.Batch, workload.MicroBatches = batch, min(workload.MicroBatches, batch)
	for workload.MicroBatches > 0 && batch%workload.MicroBatches != 0 {
		workload.MicroBatches--
	}
}

// shorterSequences are halves of a sequence, the longest first. A model without text has none.
func shorterSequences(graph *modelgraph.Graph, seq int64) []edit {
	const shortest = 512
	if estimate.CheckLengths(graph, true, false) != nil {
		return nil
	}
	var out []edit
	for half := seq / 2; half >= shortest; half /= 2 {
		out = append(out, edit{family: "seq", apply: func(w *costmodel.Workload) {
			w.TargetSeq = min(w.TargetSeq, max(1, w.TargetSeq*half/seq))
			w.Seq = half
		}})
	}
	return out
}

// families are the families of edits that have helped. The empty family has no members.
type families map[string]bool

func (helped families) add(change *edit, helps bool) {
	if change.family != "" && helps {
		helped[change.family] = true
	}
}

func changesTraining(change *edit) bool {
	var workload costmodel.Workload
	change.apply(&workload)
	return workload.LoRARank > 0
}

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

// first is the best row with an answer; false if there is none, or the time is over.
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
