package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/modelgraph"
)

// reference is the frozen model, or the base without adapters, of trl 1.16, trainer/dpo_trainer.py,
// DPOTrainer._compute_loss: it runs after the trained one, without gradients.
// Its parameters require them all the same, so that autocast caches its casts.
func reference(model *layers.Model) (out costmodel.Reference) {
	if !model.Train || !trainer.Of(model.Workload.Preset).Path.Reference {
		return out
	}
	workload := model.Workload
	workload.Batch, workload.MicroBatches, workload.Mode = layers.MicroBatch(&workload), 1, costmodel.Infer
	workload.LoRARank, workload.LoRATargets = 0, nil // adapters are switched off
	infer, err := layers.New(model.Tied, workload, model.Rules)
	if err != nil {
		return out // training has more, and it was refused
	}
	var casts int64
	for i := range model.Layers {
		layer := &model.Layers[i]
		if !model.Frozen {
			out.Params += layer.Shard.Bytes()
			out.Padding += layer.Shard.Padding()
			for j := range layer.Buffers {
				out.Params += layer.Buffers[j].Bytes
			}
		}
		step := &infer.Layers[i].Cost.Memory
		if _, head := layer.Op.(modelgraph.Head); head {
			step = &layer.Cost.Memory // its loss makes no logits either
		} else {
			casts += layer.Cost.Casts
		}
		out.Forward = max(out.Forward, step.Forward-step.KV)
	}
	if ops.MixedPrecision(model.Rules.Compute) {
		out.Forward += casts
	}
	return out
}

// shardReference makes the frozen model one group (trl 1.16, models/utils.py,
// prepare_fsdp: fully_shard on the model alone, which reshards).
func shardReference(model *layers.Model, out *costmodel.Reference) {
	whole := shard.Group{Name: "reference", Root: true}
	for unit := range model.Graph.Units {
		whole.Units = append(whole.Units, unit)
	}
	group := groupOf(model, &whole)
	out.Gathered = group.Gathered + group.Buffer
}
