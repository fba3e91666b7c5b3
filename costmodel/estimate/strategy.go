package estimate

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
)

// defaultStages is the runs a GPU where stages are interleaved.
const defaultStages = 2

// resolveStrategy fills in what follows from the strategy. The loss alone is
// kept by torch's engines, whose examples write loss = model(…).loss.
func resolveStrategy(w *costmodel.Workload) {
	w.Strategy = cmp.Or(w.Strategy, costmodel.DeviceMap)
	traits := w.Strategy.Traits()
	if len(traits.Runtimes) > 0 {
		w.Runtime = cmp.Or(w.Runtime, traits.Runtimes[0])
	}
	if !traits.Staged && w.Schedule == costmodel.OneFOneB {
		w.Schedule = ""
	}
	if w.Schedule != costmodel.Interleaved && w.VirtualStages == defaultStages {
		w.VirtualStages = 0
	}
	switch {
	case traits.Staged:
		w.Schedule = cmp.Or(w.Schedule, costmodel.OneFOneB)
		if w.Schedule == costmodel.Interleaved {
			w.VirtualStages = cmp.Or(w.VirtualStages, defaultStages)
		}
	case traits.ZeroStage > 0:
		w.ShardDegree = cmp.Or(w.ShardDegree, w.World/traits.Groups, 1)
	}
}

// checkStrategy refuses combinations that no engine runs; else it is the one
// that does.
func checkStrategy(w *costmodel.Workload) (engine.Engine, error) {
	if err := CheckPlaced(w); err != nil {
		return nil, err
	}
	if err := checkSelective(w); err != nil {
		return nil, err
	}
	runtime, err := engine.Of(w)
	if err != nil {
		return nil, err
	}
	switch {
	case w.Strategy.Traits().Sequential:
	case w.World < 1:
		return nil, refuse("strategy", w.Strategy, "%s needs the number of GPUs", w.Strategy)
	case w.ShardDegree > 0 && w.World%w.ShardDegree != 0:
		return nil, refuse("shard_degree", w.ShardDegree, "%d does not divide the %d GPUs (%s)", w.ShardDegree, w.World, costmodel.Nearest(w.ShardDegree, costmodel.Divisors(w.World), func(int64) bool { return true }))
	}
	return runtime, runtime.Refuse(w)
}

// CheckPlaced refuses the numbers of another strategy than the workload's:
// they would change nothing. A strategy that is open yet (auto) takes all, and
// defaults may be written out. A fault is a [*costmodel.FieldError].
func CheckPlaced(w *costmodel.Workload) error {
	traits := w.Strategy.Traits()
	switch {
	case w.VirtualStages < 0:
		return refuse("virtual_stages", w.VirtualStages, "%d is no number of runs a GPU", w.VirtualStages)
	case w.ShardDegree < 0:
		return refuse("shard_degree", w.ShardDegree, "%d is no number of GPUs", w.ShardDegree)
	case !traits.Open && !traits.Staged && w.Schedule != "" && w.Schedule != costmodel.OneFOneB:
		return refuse("schedule", w.Schedule, "%s is a pipeline's, and %v has none (%v does)", w.Schedule, costmodel.Set("strategy", w.Strategy), costmodel.Set("strategy", costmodel.Pipeline))
	}
	if err := checkVirtual(w, &traits); err != nil {
		return err
	}
	if !traits.Open && w.ShardDegree > 0 && traits.ZeroStage == 0 {
		return refuse("shard_degree", w.ShardDegree, "%v cuts no parameters (zero1, zero2, zero3, fsdp and hsdp do)", costmodel.Set("strategy", w.Strategy))
	}
	return nil
}

// checkVirtual refuses runs a GPU that the strategy or the schedule does not
// have, as far as these are chosen.
func checkVirtual(w *costmodel.Workload, traits *costmodel.Traits) error {
	schedule := w.Schedule
	if schedule == "" && !traits.Open {
		schedule = costmodel.OneFOneB
	}
	switch {
	case w.VirtualStages == defaultStages || w.VirtualStages == 0:
	case !traits.Open && !traits.Staged:
		return refuse("virtual_stages", w.VirtualStages, "%d is a pipeline's, and %v has none (%v %v does)", w.VirtualStages,
			costmodel.Set("strategy", w.Strategy), costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("schedule", costmodel.Interleaved))
	case schedule != "" && schedule != costmodel.Interleaved:
		return refuse("virtual_stages", w.VirtualStages, "%s runs one stage a GPU (%v takes %d)", schedule, costmodel.Set("schedule", costmodel.Interleaved), w.VirtualStages)
	}
	return nil
}

// checkSelective refuses selective recompute where no engine does it:
// Transformers' gradient_checkpointing_enable, which Accelerate, Lightning and
// DeepSpeed users call, has whole blocks alone. What is meant is torchtitan's.
func checkSelective(w *costmodel.Workload) error {
	if w.Recompute != costmodel.RecomputeSelective || w.Mode != costmodel.Train || w.Runtime == costmodel.Torch {
		return nil
	}
	return refuse("recompute", w.Recompute,
		"selective is torchtitan's (of a block, attention's output and every second product are kept); under %v blocks are recomputed whole: full and none work, or selective with %v, hsdp, ddp or pipeline and %v",
		costmodel.Set("runtime", w.Runtime), costmodel.Set("strategy", costmodel.FSDP), costmodel.Set("runtime", costmodel.Torch))
}
