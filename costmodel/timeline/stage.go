package timeline

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// staged is a unit as a stage runs it. If received, its input is the stage's receive buffer, which
// counts separately. If sent, its output leaves the stage, which keeps it to the end of its backward
// (stage.py fwd_cache and backward_one_chunk). The output's gradient then comes in a buffer.
func staged(table *costmodel.Table, unitIndex int, received, sent bool) costmodel.Unit {
	unit := table.Units[unitIndex]
	if !received && !sent || len(unit.Layers) == 0 {
		return unit
	}
	if costmodel.StageRulesOf(table.Workload.Runtime).Passing {
		return passing(table, unit, unitIndex, received, sent)
	}
	unit.Layers = slices.Clone(unit.Layers)
	if received {
		in := table.Units[unitIndex-1].Output
		unit.Layers[0].Saved -= unit.Entry
		for i := range unit.Layers {
			memory := &unit.Layers[i]
			memory.Forward, memory.HeadPeak = max(memory.Forward-in, memory.Saved), max(memory.HeadPeak-in, 0)
		}
	}
	if sent {
		unit.CheckpointedOutput = 0
		for i := max(0, len(unit.Layers)-unit.Tail); i < len(unit.Layers); i++ {
			memory := &unit.Layers[i]
			memory.AccumPeak = max(memory.AccumPeak-unit.Output, -memory.Saved)
			memory.Backward = max(memory.Backward-unit.Output, memory.BackwardGrads-memory.Saved, memory.Grads-memory.Saved)
		}
	}
	return unit
}

// accumulating is the unit when its parameters have gradients from micro-batches before.
func accumulating(unit *costmodel.Unit) costmodel.Unit {
	out := *unit
	out.Layers = slices.Clone(unit.Layers)
	for i := range out.Layers {
		memory := &out.Layers[i]
		memory.Backward, memory.BackwardGrads, memory.Grads = memory.AccumPeak, 0, 0
	}
	return out
}

// passing is a unit of a stage that keeps no messages: its checkpoint keeps what came
// in, and its own output is the next stage's.
func passing(table *costmodel.Table, unit costmodel.Unit, unitIndex int, received, sent bool) costmodel.Unit {
	if sent {
		unit.CheckpointedOutput = 0
	}
	if received && unit.Recompute {
		unit.CheckpointedOutput += table.Units[unitIndex-1].Output
	}
	return unit
}
