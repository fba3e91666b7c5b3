package estimate

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// resolveStrategy fills in what follows from the strategy. The loss alone is
// kept by torch's engines, whose examples write loss = model(…).loss.
func resolveStrategy(w *costmodel.Workload) {
	w.Strategy = cmp.Or(w.Strategy, costmodel.DeviceMap)
	traits := w.Strategy.Traits()
	if len(traits.Runtimes) > 0 {
		w.Runtime = cmp.Or(w.Runtime, traits.Runtimes[0])
	}
	if !w.Strategy.Traits().Staged && w.Schedule == costmodel.OneFOneB {
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

// checkStrategy refuses combinations that no engine runs.
func checkStrategy(w *costmodel.Workload) error {
	if err := CheckPlaced(w); err != nil {
		return err
	}
	if err := checkSelective(w); err != nil {
		return err
	}
	runtimes := w.Strategy.Traits().Runtimes
	switch {
	case w.Strategy != "" && w.Runtime != "" && !slices.Contains(runtimes, w.Runtime):
		return &costmodel.FieldError{Field: "runtime", Msg: costmodel.Messagef("%s does not run %v (%v do)", w.Runtime, costmodel.Set("strategy", w.Strategy), runtimes)}
	case w.Strategy == "" || w.Strategy.Traits().Sequential:
		return nil
	case w.World < 1:
		return &costmodel.FieldError{Field: "strategy", Msg: costmodel.Messagef("%s needs the number of GPUs", w.Strategy)}
	case w.ShardDegree > 0 && w.World%w.ShardDegree != 0:
		return &costmodel.FieldError{Field: "shard_degree", Msg: costmodel.Messagef("%d does not divide the %d GPUs (%s)", w.ShardDegree, w.World, costmodel.Nearest(w.ShardDegree, costmodel.Divisors(w.World), func(int64) bool { return true }))}
	}
	if err := checkPipeline(w); err != nil {
		return err
	}
	if err := checkZero(w); err != nil {
		return err
	}
	return checkFSDP(w)
}
