package strategy

import (
	"cmp"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
)

// Options bound what is tried of a problem; the zero value bounds nothing.
type Options struct {
	// TimeLimit ends the search for one map; 0: a second.
	TimeLimit time.Duration
	// Asked is the workload that was asked for, where the problem's was chosen from it: changes are
	// settings over it. Nil: the problem's own.
	Asked *costmodel.Workload
	// Devices replace the problem's, one for one, where another number of GPUs is tried. Nil: the
	// problem's own, and their links.
	Devices []costmodel.Device
	// Fixed are the fields that no change sets, of gpus, gpu, contiguous and offload.
	Fixed []string
	// WholeBatch: the workload's batch is that of all GPUs together, so that strategies do the same
	// work. Replicas take equal parts, of one sequence at least. Otherwise it is that of each
	// replica, as it always is in the workload of a row and in the settings of a change.
	WholeBatch bool
	// Under lays what a trainer sets under a strategy over the workload of its row. Nil: nothing.
	Under func(*costmodel.Workload)
	// Current adds the row of the map that device_map="auto" gives.
	Current bool
	// Stay: nothing leaves the devices, though the problem's Offload lets it.
	NoOffload bool
}

// share turns a batch of all GPUs together into that of one replica, where the options say that it
// is one.
func (of *comparison) share(workload *costmodel.Workload) {
	parts := replicas(workload, of.gpus())
	batch, micro := max(1, workload.Batch), workload.MicroBatches
	if !of.WholeBatch || workload.DeepSpeed != nil || parts <= 1 {
		return
	}
	setBatch(workload, (batch+parts-1)/parts)
	if micro > 0 && batch%micro != 0 {
		workload.MicroBatches = micro // a contradiction, which the row is refused for
	}
}

func (options *Options) limit() time.Duration { return cmp.Or(options.TimeLimit, time.Second) }
