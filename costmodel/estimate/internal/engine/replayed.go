package engine

import (
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/reserve"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Replay has a table of one GPU follow a step's requests, if a table of types has them in order. What PyTorch's allocator
// leaves uncut depends on the order: the units' padding becomes what their peak lacks, and the pool is simulated.
func Replay(model *layers.Model, table *costmodel.Table) {
	if !model.Workload.OneGPU || model.Workload.Strategy != costmodel.DeviceMap {
		return
	}
	taped := reserve.Tape(model)
	if taped == nil {
		return
	}
	resident := timeline.ResidentOn(table, table.InputDevice, &costmodel.Device{WorkspaceBytes: reserve.Workspace}, false)
	padded := func(units []costmodel.Unit) int64 {
		var sum timeline.Summary
		var before int64
		for i := range units {
			sum, before = sum.Join(timeline.Of(&units[i])), before+units[i].Padding
		}
		peak, _ := taped.Peaks(false)
		return max(-resident.Workspace, before+peak-sum.Peak(resident)) // less than 0 if units count too much
	}
	if part, all := table.Part, make([]int, len(table.Units)); part == nil {
		layers.Spread(table.Units, padded(table.Units))
	} else {
		for unit := range all {
			all[unit] = unit
		}
		padding := sync.OnceValue(func() int64 { return padded(part(all, false)) })
		table.Part = func(owned []int, copies bool) []costmodel.Unit {
			units := part(owned, copies)
			if len(owned) == len(all) {
				layers.Spread(units, padding())
			}
			return units
		}
	}
	table.Marks = once(func() [][2]int64 {
		_, below := taped.Peaks(false)
		_, above := taped.Peaks(true)
		return [][2]int64{{min(below, above), max(below, above)}}
	})
}
