package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
)

// ddp is torch.nn.parallel.DistributedDataParallel. Its buckets hold every gradient a second time,
// in the gradients' type (reducer.cpp, Reducer::initialize_buckets). no_sync does not change
// memory. With gradient_as_bucket_view the gradients are views of buckets: one set, which stays
// between steps (Reducer::mark_variable_ready_dense copies each new gradient in).
type ddp struct{ base }

func (ddp) Rules(workload *costmodel.Workload) layers.Rules {
	rules := base{}.Rules(workload)
	rules.GradsPersist = rules.GradsPersist || workload.GradientViews
	rules.Padding, rules.Rests = true, followWhole
	return rules
}

// Finish adds the buckets, and warns that a second set may be alive. In the second iteration
// Reducer::rebuild_buckets allocates new buckets in the order of the gradients and drops the first
// ones. On some ranks these stayed, in whole or in part, to that iteration's peak, in all types,
// with views and without (measured/dist_more.json). The cause is not known; all-reduces that the
// watchdog of ProcessGroupNCCL.cpp has not cleared would explain it.
func (ddp) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped, table.Reference = true, wholeReference(model)
	generation(model, table)
	var set int64
	for i := range model.Layers {
		set += model.Layers[i].Grads.First
	}
	if !model.Train {
		return
	}
	if _, ok := model.Followed(); ok {
		table.Marks = once(func() [][2]int64 { return wholeMarks(model) })
	}
	if model.Workload.World == 1 && trainer.Of(model.Workload.Preset).Path.PlainAlone {
		return
	}
	if !model.Workload.GradientViews {
		table.Buckets = set
	}
	if set == 0 || model.Workload.World < 2 || findsUnused(&model.Workload) {
		return
	}
	table.SecondBuckets = set
	warn(table, "DDP rebuilds its buckets in the second iteration: some GPUs also keep the old ones, and their peak is up to %v higher", costmodel.Bytes(set))
}

// findsUnused reports that transformers' Trainer looks for unused parameters: without checkpoints,
// and for any PEFT model (trainer.py, _build_accelerator_args). DDP then never rebuilds its buckets
// (reducer.hpp, should_rebuild_buckets).
func findsUnused(workload *costmodel.Workload) bool {
	return trainer.Of(workload.Preset).Path.PlainAlone && (workload.Recompute == "" || workload.Recompute == costmodel.RecomputeNone || workload.LoRARank > 0)
}
