package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// gatherModules sets ZeRO 3's gathered bytes at every layer, and those throughout: small
// parameters, and the gradients' bucket (stage3.py, _setup_for_real_optimizer).
func gatherModules(model *layers.Model, table *costmodel.Table) {
	set := settingsOf(&model.Workload)
	root, trace := modulesOf(model, set.Persistence)
	run := hooksOf(root, trace, model.Train, model.Recomputes)
	moments := zero.Walk(trace, set.Limits, model.Workload.ShardDegree, set.OffloadParams)
	for unit := range table.Units {
		for k, i := range model.Unit(unit) {
			step := &table.Units[unit].Layers[k]
			step.GatheredForward = most(moments, run.forward, i)
			step.GatheredAgain = most(moments, run.again, i)
			step.GatheredBackward = most(moments, run.backward, i)
			if step.Loss && model.Train {
				step.GatheredForward = moments[run.forward[i].last].After
				step.GatheredBackward = moments[run.loss-1].After
			}
		}
	}
	table.Buckets += zero.Persistent(trace, model.Workload.ShardDegree)
	if model.Train && set.Contiguous {
		bucket := set.ReduceBucket * reducedAs(model)
		table.Buckets += bucket + allocator.Rounding(bucket)
	}
}

// most is the most that is gathered while a layer runs.
func most(moments []zero.Moment, where map[int]span, layer int) int64 {
	at, ok := where[layer]
	if !ok {
		return 0
	}
	var out int64
	for i := at.first; i <= at.last; i++ {
		out = max(out, moments[i].Most)
	}
	return out
}

// settingsOf are the settings of the workload's configuration, or DeepSpeed's defaults.
func settingsOf(workload *costmodel.Workload) zero.Settings {
	if workload.DeepSpeed != nil {
		return *workload.DeepSpeed
	}
	return zero.Defaults(int64(workload.Strategy.Traits().ZeroStage))
}

// reducedAs is the size of a reduced gradient's element: the section's type, fp32 without one
// (engine.py, communication_data_type).
func reducedAs(model *layers.Model) int64 {
	if settingsOf(&model.Workload).FP32Reduction {
		return 4
	}
	return ops.WeightBytes(model.Rules.Compute)
}
