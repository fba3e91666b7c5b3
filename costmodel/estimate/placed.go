package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
)

// defaultStages is the runs a GPU where stages are interleaved.
const defaultStages = 2

// CheckPlaced refuses the numbers of another strategy than the workload's:
// they would change nothing. A strategy that is open yet (auto) takes all, and
// defaults may be written out.
func CheckPlaced(w *costmodel.Workload) error {
	traits := w.Strategy.Traits()
	open := traits.Open
	switch {
	case w.VirtualStages < 0:
		return &costmodel.FieldError{Field: "virtual_stages", Msg: costmodel.Messagef("%d is no number of runs a GPU", w.VirtualStages)}
	case w.ShardDegree < 0:
		return &costmodel.FieldError{Field: "shard_degree", Msg: costmodel.Messagef("%d is no number of GPUs", w.ShardDegree)}
	case !open && !w.Strategy.Traits().Staged && w.Schedule != "" && w.Schedule != costmodel.OneFOneB:
		return &costmodel.FieldError{Field: "schedule", Msg: costmodel.Messagef("%s is a pipeline's, and %v has none (%v does)", w.Schedule, costmodel.Set("strategy", w.Strategy), costmodel.Set("strategy", "pipeline"))}
	}
	if err := checkVirtual(w, open); err != nil {
		return err
	}
	if !open && w.ShardDegree > 0 && traits.ZeroStage == 0 {
		return &costmodel.FieldError{Field: "shard_degree", Msg: costmodel.Messagef("%v cuts no parameters (zero1, zero2, zero3, fsdp and hsdp do)", costmodel.Set("strategy", w.Strategy))}
	}
	return nil
}

// checkVirtual refuses runs a GPU that the strategy or the schedule does not
// have, as far as these are chosen.
func checkVirtual(w *costmodel.Workload, open bool) error {
	schedule := w.Schedule
	if schedule == "" && !open {
		schedule = costmodel.OneFOneB
	}
	switch {
	case w.VirtualStages == defaultStages || w.VirtualStages == 0:
	case !open && !w.Strategy.Traits().Staged:
		return &costmodel.FieldError{Field: "virtual_stages", Msg: costmodel.Messagef("%d is a pipeline's, and %v has none (%v %v does)", w.VirtualStages, costmodel.Set("strategy", w.Strategy), costmodel.Set("strategy", "pipeline"), costmodel.Set("schedule", "interleaved"))}
	case schedule != "" && schedule != costmodel.Interleaved:
		return &costmodel.FieldError{Field: "virtual_stages", Msg: costmodel.Messagef("%s runs one stage a GPU (%v takes %d)", schedule, costmodel.Set("schedule", "interleaved"), w.VirtualStages)}
	}
	return nil
}
