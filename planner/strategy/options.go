package strategy

import (
	"cmp"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
)

// Options limit the search; the zero value is no limit.
type Options struct {
	// TimeLimit ends the search for one map; 0: a second.
	TimeLimit time.Duration
	// Asked is the request's workload if the problem's was chosen from it: changes are settings
	// over it. Nil: the problem's own.
	Asked *costmodel.Workload
	// Devices replace the problem's, one for one, for other numbers of GPUs. Nil: the problem's
	// own, with their links.
	Devices []costmodel.Device
	// Fixed are the fields that no change sets, of gpus, gpu, contiguous and offload.
	Fixed []string
	// WholeBatch: the workload's batch is of all GPUs together, so that strategies do the same
	// work. Replicas take equal parts, of one sequence at least. Otherwise it is a replica's batch,
	// as always in a row's workload and in the settings of a change.
	WholeBatch bool
	// Under sets a trainer's settings under a strategy in the workload of its row. Nil: nothing.
	Under func(*costmodel.Workload)
	// Current adds the row of the map that device_map="auto" gives.
	Current bool
	// Stay: nothing is offloaded, even if the problem's Offload allows it.
	NoOffload bool
}

// share turns a batch of all GPUs together into a replica's, with WholeBatch.
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
