package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
)

// flat is PyTorch's FSDP1 under FULL_SHARD or HYBRID_SHARD with use_orig_params (torch 2.11,
// distributed/fsdp/_flat_param.py): a group's parameters are one tensor in equal shards.
type flat struct{ fsdp }

// Refuse names what is not modelled.
func (flat) Refuse(workload *costmodel.Workload) error {
	if err := (fsdp{}).Refuse(workload); err != nil {
		return err
	}
	switch instead := costmodel.Set("preset", "transformers"); {
	case workload.Quantize != "":
		return costmodel.Refuse(costmodel.Set("quantize", workload.Quantize), "devmap counts 4-bit weights under FSDP2, not under FSDP1: use %v", instead)
	case workload.HostShards:
		return costmodel.Refuse(costmodel.Set("offload", "cpu"), "devmap counts FSDP2's CPU offload, not FSDP1's: use %v", instead)
	}
	return nil
}

// Rules: earlier micro-batches' gradients are flat too, so the groups hold them. Adapters get an
// fp32 copy of their input, in the shard's type (peft/tuners/tuners_utils.py, _cast_input_dtype);
// FSDP1 casts it to 16 bits (_cast_forward_inputs), as autocast does.
func (flat) Rules(workload *costmodel.Workload) layers.Rules {
	rules := fsdp{}.Rules(workload)
	rules.GradsPersist = false
	rules.AutocastAdapters = workload.LoRARank > 0 && ops.MixedPrecision(workload.Precision)
	return rules
}

func (flat) Finish(model *layers.Model, table *costmodel.Table) {
	path := &trainer.Of(model.Workload.Preset).Path
	table.OutputsDropped, table.Flat, table.Prefetches = true, true, path.Prefetches
	table.LastGradients = model.Train && path.LastGradients
	for _, wrapped := range shard.Groups(model.Graph, shard.EndsOf(&model.Workload)) {
		group, stored := flatGroup(model, &wrapped)
		if len(group.Units) == 0 {
			continue
		}
		for _, unit := range wrapped.Units { // one tensor pays the allocator's rounding
			table.Units[unit].Padding = 0
		}
		table.Units[wrapped.Units[0]].Padding = allocator.Rounding(stored)
		if model.Workload.MicroBatches > 1 { // no_sync: accelerator.py; lightning/pytorch/strategies/parallel.py, block_backward_sync
			group.Retained = group.Joined
		}
		if group.Root && path.LastGradients { // device_id: FSDPStrategy moves the root's parameters to the GPU, then joins them
			table.Prepared = 2 * model.Workload.ShardDegree * stored
		}
		table.Groups = append(table.Groups, group)
	}
	if model.Train && model.Workload.MicroBatches > 1 {
		warn(table, "the trainer reduces gradients in the last micro-batch only (no_sync), so whole gradients stay until then")
	}
}

// flatGroup is a group's flat parameter, and the size of the rank's part of it.
func flatGroup(model *layers.Model, wrapped *shard.Group) (group costmodel.Group, stored int64) {
	group = costmodel.Group{Name: wrapped.Name, Root: wrapped.Root, RemainsGathered: wrapped.Root, Late: wrapped.Root}
	degree, compute := model.Workload.ShardDegree, ops.WeightBytes(model.Rules.Compute)
	var elements, cast, adapters int64 // of one rank
	for _, unit := range wrapped.Units {
		runs := false
		for i := model.Graph.Units[unit].First; i < model.Graph.Units[unit].End; i++ {
			layer := &model.Layers[i]
			runs = runs || layer.Runs
			stored += layer.Shard.Bytes()
			for j, part := range layer.Shard.Owned() {
				if elements += part.Numel; layer.Shard.Stored(j) != part.Numel*compute {
					cast += part.Numel
				}
			}
			for _, matrix := range layer.Shard.Matrices() {
				adapters += matrix.Numel()
			}
		}
		if runs {
			group.Units = append(group.Units, unit)
		}
	}
	// An adapter's matrix is a group of its own below the block's (peft/utils/
	// other.py, fsdp_auto_wrap_policy); they are counted with it.
	group.Gathered = block(degree*elements*compute) + degree*adapters*model.AdapterCompute()
	group.CopyIn = block(cast * compute) // _use_low_precision_shard
	trained, each, gradient := elements, ops.WeightBytes(model.Workload.Precision), compute
	if model.Frozen {
		trained, each, gradient = adapters, model.AdapterStored(), model.AdapterCompute()
	}
	if model.Train && trained > 0 { // parameters without a gradient have zeros in the joined one
		group.Joined, group.Reduced = block(degree*trained*gradient), block(trained*each)
		reduced := each
		if model.Rules.ReduceAsComputed {
			reduced = gradient
		}
		group.Reduce = block(degree * trained * reduced)
		if reduced != each { // _cast_grad_to_param_dtype
			group.Staged = block(trained * reduced)
		}
	}
	return group, stored
}

// block is the size of a tensor's block.
func block(size int64) int64 { return size + allocator.Rounding(size) }
