package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
)

// idleBlocks names the listed blocks that see no tokens, as those of a vision tower without images.
// Blocks of all stacks have one numbering, in the order they run: the tower's come first.
func idleBlocks(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if !model.Train || !model.Workload.ListsRecomputed() {
		return nil
	}
	var runs []bool
	for unit := range model.Graph.Units {
		if exec := model.Graph.Units[unit].Exec; len(exec) > 1 {
			runs = append(runs, model.Layers[exec[0]].Runs)
		}
	}
	listed, err := model.Workload.Recomputed(len(runs))
	if err != nil { // layers.New refuses it
		return nil
	}
	idle := make([]bool, len(runs))
	for block := range runs {
		idle[block] = listed[block] && !runs[block]
	}
	none := costmodel.RecomputeOf(idle)
	if none == costmodel.RecomputeNone {
		return nil
	}
	return []costmodel.Message{costmodel.Messagef("%v: blocks %s see no tokens here, so recomputing them saves nothing; the blocks that run are %s", costmodel.Set("recompute", model.Workload.Recompute), none, costmodel.RecomputeOf(runs))}
}
