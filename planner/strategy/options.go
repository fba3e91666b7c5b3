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
	// Asked is the workload that was asked for, where the problem's was chosen
	// from it: changes are settings over it. Nil: the problem's own.
	Asked *costmodel.Workload
	// Devices replace the problem's, one for one, where another number of
	// GPUs is tried. Nil: the problem's own, and their links.
	Devices []costmodel.Device
	// Fixed are the fields that no change sets, of gpus, gpu, contiguous and
	// offload.
	Fixed []string
	// Stay: nothing leaves the devices, though the problem's Offload lets it.
	NoOffload bool
}

func (options *Options) limit() time.Duration { return cmp.Or(options.TimeLimit, time.Second) }
