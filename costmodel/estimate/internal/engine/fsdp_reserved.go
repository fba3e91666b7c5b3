package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/reserve"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// shardMarks are FSDP2's [marks].
func shardMarks(model *layers.Model, groups []costmodel.Group) [][2]int64 {
	decoder, ok := reserve.Follow(model)
	if !ok {
		return nil
	}
	each := ops.WeightBytes(model.Workload.Precision)
	state, _ := model.Optimizer.State(nil, 1024, each)
	rank := reserve.Shards{
		Ranks: model.Workload.ShardDegree, Stored: each, StoredAdapter: model.AdapterReduce(), States: state / (1024 * each),
		MicroBatches: int(min(3, max(1, model.Workload.MicroBatches))), Steps: 3, Hybrid: model.Workload.Strategy.Traits().Groups > 1,
	}
	var root reserve.ShardGroup
	for i := range groups {
		group := &groups[i]
		made := reserve.ShardGroup{Buffer: group.Buffer, CopyIn: group.CopyIn, Reduce: group.Reduce, Reduced: group.Reduced, Remains: group.RemainsGathered}
		for _, unit := range group.Units {
			for layer := model.Graph.Units[unit].First; layer < model.Graph.Units[unit].End; layer++ {
				made.Weights = append(made.Weights, decoder.Owned[layer]...)
			}
		}
		if group.Root {
			root = made
		} else {
			rank.Groups = append(rank.Groups, made)
		}
	}
	if len(rank.Groups) != len(decoder.Blocks) {
		return nil
	}
	rank.Groups = append(rank.Groups, root)
	return rank.Simulate(decoder)
}
