package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// megatron is Megatron-Core 0.19 on data parallelism alone, with its distributed
// optimizer, as ms-swift starts it (swift/megatron/arguments/megatron_args.py).
// Weights have 16 bits, and gradients are an fp32 buffer that stays
// (core/distributed/param_and_grad_buffer.py). Master weights and Adam's states are
// cut over the replicas (core/optimizer/distrib_optimizer.py). Together these are
// 6 + 12/GPUs bytes a parameter.
type megatron struct{ base }

func (megatron) Precision(stored costmodel.Precision) (costmodel.Precision, bool) {
	return deepspeed{}.Precision(stored)
}

// Refuse names what is not counted.
func (megatron) Refuse(workload *costmodel.Workload) error {
	for _, refused := range []struct {
		when           bool
		field, is, use string
	}{
		{workload.Precision != costmodel.BF16Mixed, "precision", string(workload.Precision), string(costmodel.BF16Mixed)},
		{workload.Optimizer != costmodel.AdamW, "optimizer", workload.Optimizer, costmodel.AdamW},
		{workload.Loss != "" && workload.Loss != value.LossEager, "loss", workload.Loss, value.LossEager},
		{workload.Attention == value.EagerAttention, "attention", workload.Attention, value.SDPA},
		{workload.Images > 0, "images", costmodel.Set("", workload.Images).Value, "0"},
		{workload.EMA, "ema", "true", "false"},
	} {
		if refused.when {
			return costmodel.Refuse(costmodel.Set(refused.field, refused.is), "devmap does not count %s under %v: use %v",
				refused.is, costmodel.Set("preset", workload.Preset), costmodel.Set(refused.field, refused.use))
		}
	}
	return nil
}

func (megatron) Rules(workload *costmodel.Workload) layers.Rules {
	return layers.Rules{Compute: gathered(workload.Precision), Masters: true, GradsPersist: true, Megatron: true}
}

// Regions adds TransformerEngine's workspace, and refuses layers that are not
// counted.
func (megatron) Regions(model *layers.Model, table *costmodel.Table) error {
	for i := range model.Layers {
		if layer := &model.Layers[i]; model.Train && layer.Runs && !layer.Cost.Known {
			return costmodel.Refuse(costmodel.Set("preset", model.Workload.Preset),
				"devmap counts dense decoders alone under Megatron, and layer %q is another: %v takes it", layer.Name, costmodel.Set("preset", "ms-swift"))
		}
	}
	table.Workspaces++
	return nil
}

// Finish cuts states over the replicas, and makes gradients fp32.
func (megatron) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped = true
	if !model.Train {
		return
	}
	for unit := range table.Units {
		out := &table.Units[unit]
		out.OptimizerState, out.StepTransient, out.Padding, out.ResidentGrads = 0, 0, 0, 0 // flat buffers
		for k, i := range model.Unit(unit) {
			out.Layers[k].Grads = 0 // a tied table's two gradients are added to the buffer
			if !model.Layers[i].Runs {
				continue
			}
			for _, tensor := range updated(&model.Layers[i].Whole, model) {
				out.ResidentGrads += 4 * tensor.numel
				out.OptimizerState += 12 * shard.Share(tensor.numel, model.Workload.World)
			}
		}
	}
	warn(table, "Megatron's layers were read, not measured: peaks are within 1%% of Megatron-LM's own figures for GPT, and within 10%% with rotary embeddings or without apex")
}
