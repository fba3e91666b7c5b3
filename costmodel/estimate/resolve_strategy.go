package estimate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// resolveStrategy fills in what follows from the strategy. The loss alone is
// kept by torch's engines, whose examples write loss = model(…).loss.
func resolveStrategy(w *costmodel.Workload) {
	w.Strategy = cmp.Or(w.Strategy, costmodel.DeviceMap)
	w.Runtime = cmp.Or(w.Runtime, w.Strategy.Runtimes()[0])
	if w.Strategy != costmodel.Pipeline && w.Schedule == costmodel.OneFOneB {
		w.Schedule = ""
	}
	if w.Schedule != costmodel.Interleaved && w.VirtualStages == defaultStages {
		w.VirtualStages = 0
	}
	switch w.Strategy {
	case costmodel.Pipeline:
		w.Schedule = cmp.Or(w.Schedule, costmodel.OneFOneB)
		if w.Schedule == costmodel.Interleaved {
			w.VirtualStages = cmp.Or(w.VirtualStages, defaultStages)
		}
	case costmodel.Zero1, costmodel.Zero2, costmodel.Zero3, costmodel.FSDP:
		w.ShardDegree = cmp.Or(w.ShardDegree, w.World)
	case costmodel.HSDP:
		w.ShardDegree = cmp.Or(w.ShardDegree, max(1, w.World/2))
	default: // nothing is cut
	}
}

// checkStrategy refuses combinations that no engine runs.
func checkStrategy(w *costmodel.Workload) error {
	if err := CheckPlaced(w); err != nil {
		return err
	}
	if err := checkSelective(w); err != nil {
		return err
	}
	runtimes := w.Strategy.Runtimes()
	switch {
	case w.Strategy != "" && w.Runtime != "" && !slices.Contains(runtimes, w.Runtime):
		return &WorkloadError{"runtime", fmt.Sprintf("%s does not run --strategy %s (%v do)", w.Runtime, w.Strategy, runtimes)}
	case w.Strategy == "" || w.Strategy == costmodel.DeviceMap:
		return nil
	case w.World < 1:
		return &WorkloadError{"strategy", fmt.Sprintf("%s needs the number of GPUs", w.Strategy)}
	case w.ShardDegree > 0 && w.World%w.ShardDegree != 0:
		return &WorkloadError{"shard-degree", fmt.Sprintf("%d does not divide the %d GPUs (%s)", w.ShardDegree, w.World, costmodel.Nearest(w.ShardDegree, costmodel.Divisors(w.World), func(int64) bool { return true }))}
	}
	if err := checkPipeline(w); err != nil {
		return err
	}
	if err := checkZero(w); err != nil {
		return err
	}
	return checkFSDP(w)
}
