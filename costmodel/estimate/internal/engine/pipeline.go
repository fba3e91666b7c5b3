package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/modelgraph"
)

// pipeline is torch.distributed.pipelining: the caller's loss (loss_fn), and a rotary embedding on
// each stage for every micro-batch. Every stage that uses a tied parameter has a copy.
type pipeline struct{ base }

// Refuse names what stages cannot run: they keep no cache.
func (pipeline) Refuse(workload *costmodel.Workload) error {
	if workload.NewTokens > 0 {
		return costmodel.Refuse(costmodel.Set("new_tokens", workload.NewTokens),
			"torch.distributed.pipelining runs one forward and generates no tokens (%v does; 0 works here)", costmodel.Set("strategy", costmodel.DeviceMap))
	}
	return nil
}

// Rules cut what replicas of a stage share.
func (pipeline) Rules(workload *costmodel.Workload) layers.Rules {
	return layers.Rules{Compute: workload.Precision, Untied: true, Cut: workload.DP.Count() > 1}
}

func (pipeline) Finish(model *layers.Model, table *costmodel.Table) {
	for unit := range table.Units {
		out, exec := &table.Units[unit], model.Unit(unit)
		if model.Train { // without backward nothing is saved
			entry(model, exec, out)
			out.StatePadding = statePadding(model, exec)
		}
		for k, i := range exec {
			step := &out.Layers[k]
			step.Forward -= step.KV // a stage's forward keeps no cache
			step.KV, step.CacheGrowth, step.UntilBodyEnd = 0, 0, 0
			if _, ok := model.Layers[i].Op.(modelgraph.Rotary); ok {
				table.Rotary += model.Layers[i].Cost.Output
				step.Saved = 0
			}
		}
		if unit > 0 && outsideChain(model, exec) {
			out.Output = table.Units[unit-1].Output
		}
		if model.Rules.Cut {
			gathers(model, table, unit)
		}
	}
}

// gathers makes a unit with parameters an FSDP2 group, which a step's first forward gathers and its last
// backward reduces. Under a pipeline apply_fsdp calls fully_shard on every block, the embedding, the
// norm and the head, without resharding (torchtitan/models/llama3/infra/parallelize.py). With one shard
// it is torch's composable replicate (distributed/_composable/replicate_with_fsdp.py), which reduces
// gradients over all replicas.
func gathers(model *layers.Model, table *costmodel.Table, unit int) {
	group := groupOf(model, &shard.Group{Name: model.Graph.Units[unit].Name, Units: []int{unit}})
	if group.Gathered > 0 && len(group.Units) > 0 {
		group.RemainsGathered = true
		table.Groups = append(table.Groups, group.Group)
	}
}

// outsideChain reports a unit that the hidden states do not pass: the rotary.
func outsideChain(model *layers.Model, exec []int) bool {
	for _, i := range exec {
		if _, ok := model.Layers[i].Op.(modelgraph.Rotary); !ok {
			return false
		}
	}
	return true
}

// entry finds what a unit saves of its input, and how far back the gradient of its output stays
// unchanged: a block's second residual carries it past the feed-forward layers to their norm.
func entry(model *layers.Model, exec []int, out *costmodel.Unit) {
	if len(exec) == 0 {
		return
	}
	first := &model.Layers[exec[0]]
	stream := ops.StreamBytes(first.Shape.Precision)
	switch op := first.Op.(type) {
	case modelgraph.Norm:
		// x.to(float32) of an fp32 tensor is the tensor itself; layer_norm saves its input uncast.
		if op.Style == modelgraph.LayerNorm || stream == 4 {
			out.Entry = stream * op.Dim * first.Shape.Tokens
		}
	case modelgraph.Head:
		if first.Shape.HeadAlone && !ops.MixedPrecision(first.Shape.Precision) {
			out.Entry = ops.ComputeBytes(first.Shape.Precision) * op.Dim * first.Shape.Tokens
		}
	}
	out.Tail = 1
	for len(exec) > 1 && out.Tail < len(exec) {
		if _, ok := model.Layers[exec[len(exec)-1-out.Tail]].Op.(modelgraph.Attention); ok {
			break
		}
		out.Tail++
	}
}

// statePadding is the allocator's rounding of a unit's gradients and optimizer states, made in the
// first step next to the activations' blocks. One that fits none of these takes a new segment, with
// its weight's rounding (CUDACachingAllocator.cpp, malloc: get_free_block, then alloc_block). The
// feed-forward layers have the widest activations.
func statePadding(model *layers.Model, exec []int) int64 {
	var total, widest int64
	for _, i := range exec {
		if op, ok := model.Layers[i].Op.(modelgraph.MLP); ok {
			shape := &model.Layers[i].Shape
			widest = max(widest, ops.ComputeBytes(shape.Precision)*shape.Tokens*op.Hidden)
		}
	}
	if widest == 0 || model.Frozen || model.Recomputes {
		return 0 // not a block of layers, or blocks that depend on the history
	}
	const segment = 10 << 20 // larger tensors have segments of their own
	each := ops.WeightBytes(model.Workload.Precision)
	for _, i := range exec {
		for _, tensor := range model.Layers[i].Owned() {
			size := tensor.Numel * each
			if !tensor.DType.Float() || size < segment || size <= widest {
				continue
			}
			state, _ := model.Optimizer.State(tensor.Shape, tensor.Numel, each)
			total += (1 + state/size) * allocator.Rounding(size)
		}
	}
	return total
}
