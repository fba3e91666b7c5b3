package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// reference is the frozen model, or the base without adapters, of trl 1.16, trainer/dpo_trainer.py,
// DPOTrainer._compute_loss. It runs after the trained one, without gradients. Its parameters
// require gradients, so autocast caches its casts.
func reference(model *layers.Model) (out value.Reference, head int64) {
	if !model.Train || !trainer.Of(model.Workload.Preset).Path.Reference {
		return out, 0
	}
	workload := model.Workload
	workload.Batch, workload.MicroBatches, workload.Mode = layers.MicroBatch(&workload), 1, costmodel.Infer
	workload.LoRARank, workload.LoRATargets = 0, nil // adapters are switched off
	infer, err := layers.New(model.Tied, workload, model.Rules)
	if err != nil {
		return out, 0 // training has more, and it was refused
	}
	var casts int64
	for i := range model.Layers {
		layer := &model.Layers[i]
		if !model.Frozen {
			if !workload.HostShards { // prepare_fsdp passes the plugin's offload on
				out.Params += layer.Shard.Bytes()
				out.Padding += layer.Shard.Padding()
			}
			for j := range layer.Buffers {
				out.Params += layer.Buffers[j].Bytes
			}
		}
		if _, ends := layer.Op.(modelgraph.Head); ends {
			head = layer.Cost.Memory.Forward // its loss makes no logits either
			continue
		}
		casts += layer.Cost.Casts
		step := &infer.Layers[i].Cost.Memory
		out.Forward = max(out.Forward, step.Forward-step.KV)
	}
	if ops.MixedPrecision(model.Rules.Compute) {
		out.Forward, head = out.Forward+casts, head+casts
	}
	return out, head
}

// wholeReference is a reference with whole parameters.
func wholeReference(model *layers.Model) value.Reference {
	out, head := reference(model)
	out.Forward = max(out.Forward, head)
	return out
}

// shardedReference is one group (trl 1.16, models/utils.py, prepare_fsdp: fully_shard on the model
// alone, which reshards). If adapters are switched off instead, the groups exist, and full_tensor
// gathers the head again.
func shardedReference(model *layers.Model, groups []costmodel.Group) value.Reference {
	out, head := reference(model)
	if out.Forward == 0 {
		return out
	}
	if !model.Frozen {
		whole := shard.Group{Name: "reference", Root: true}
		for unit := range model.Graph.Units {
			whole.Units = append(whole.Units, unit)
		}
		group := groupOf(model, &whole)
		out.Gathered, out.Forward = group.Gathered+group.Buffer, max(out.Forward, head)
		return out
	}
	var buffer, again int64
	block := out.Forward
	best := func(gathered, forward int64) {
		if gathered+forward > out.Gathered+out.Forward {
			out.Gathered, out.Forward = gathered, forward
		}
	}
	for i := range groups {
		switch group := &groups[i]; {
		case group.Unhooked && group.Buffer == 0:
			again = group.Gathered
		case !group.Root && !group.RemainsGathered && group.Late: // the embedding
			best(group.Gathered+group.Buffer, model.Layers[model.Graph.Units[group.Units[0]].First].Cost.Output)
		case !group.Root && !group.RemainsGathered:
			best(group.Gathered+group.Buffer, block)
			buffer = group.Buffer // of the last one, until forward ends
		}
	}
	best(again+buffer, head)
	return out
}

// generation is the model as it generates all sequences of a step (trl 1.16,
// trainer/grpo_trainer.py, _generate_single_turn), under autocast in every call.
func generation(model *layers.Model, table *costmodel.Table) {
	if !model.Train || !trainer.Of(model.Workload.Preset).Path.Generates || model.Workload.NewTokens == 0 {
		return
	}
	workload := model.Workload
	workload.Mode, workload.MicroBatches, workload.Recompute = costmodel.Infer, 1, costmodel.RecomputeNone
	if rows := workload.Rows; rows != nil { // prompts are padded to the longest of the step
		workload.Seq, workload.Rows = rows.Worst.Tokens, nil
		if workload.Usual {
			workload.Seq = rows.Usual.Tokens
		}
	}
	infer, err := layers.New(model.Tied, workload, model.Rules)
	if err != nil {
		return
	}
	table.Generation, _ = layers.Units(infer)
	if ops.MixedPrecision(model.Rules.Compute) {
		for i := range model.Layers {
			table.GenerationCopies += model.Layers[i].Cost.Casts
		}
	}
}
