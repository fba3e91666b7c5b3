package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// megatron is Megatron-Core 0.19 with its distributed optimizer, as ms-swift
// (swift/megatron/arguments/megatron_args.py) and Megatron-LM start it. Weights have 16 bits;
// gradients are an fp32 buffer that stays (core/distributed/param_and_grad_buffer.py). Replicas
// shard master weights and Adam's states (core/optimizer/distrib_optimizer.py): in all 6 +
// 12/replicas bytes a parameter. All stages of a pipeline have the same degrees of tensor, context
// and expert parallelism, and replicas fill the rest.
type megatron struct{ base }

func (megatron) Precision(stored costmodel.Precision) (costmodel.Precision, bool) {
	return deepspeed{}.Precision(stored)
}

// Refuse names what is not counted.
func (megatron) Refuse(workload *costmodel.Workload) error {
	own := workload.Runtime == value.Megatron // a preset counts some of them
	return refuseFirst(workload, []refusal{
		{workload.Precision != costmodel.BF16Mixed, "precision", string(workload.Precision), string(costmodel.BF16Mixed)},
		{workload.Optimizer != costmodel.AdamW, "optimizer", workload.Optimizer, costmodel.AdamW},
		{workload.Loss != "" && workload.Loss != value.LossEager, "loss", workload.Loss, value.LossEager},
		{workload.Attention == value.EagerAttention && workload.Preset != "", "attention", workload.Attention, value.SDPA},
		{workload.LoRARank > 0, "lora_rank", costmodel.Set("", workload.LoRARank).Value, "0"},
		{workload.Quantize != "", "quantize", workload.Quantize, "off"},
		{workload.Schedule == costmodel.GPipe, "schedule", string(workload.Schedule), string(costmodel.OneFOneB)},
		{workload.Mode != costmodel.Train, "mode", string(workload.Mode), string(costmodel.Train)},
		{workload.Images > 0, "images", costmodel.Set("", workload.Images).Value, "0"},
		{workload.EMA, "ema", "true", ""},
		{own && workload.Liger, "liger", "true", ""},
		{own && workload.LossOnly, "loss_only", "true", ""},
		{own && workload.GradientViews, "gradient_as_bucket_view", "true", ""},
		{own && workload.BuiltOn == value.BuiltOnCPU, "built_on", workload.BuiltOn, "gpu"},
		{own && workload.LabelTokens > 0, "label_tokens", costmodel.Set("", workload.LabelTokens).Value, ""},
	})
}

// refusal is a setting that an engine does not count, and one that it does; "": none.
type refusal struct {
	when           bool
	field, is, use string
}

func refuseFirst(workload *costmodel.Workload, refusals []refusal) error {
	for _, one := range refusals {
		switch {
		case !one.when:
		case one.use == "":
			return costmodel.Refuse(costmodel.Set(one.field, one.is), "devmap does not count it under %v: leave it out", program(workload))
		default:
			return costmodel.Refuse(costmodel.Set(one.field, one.is), "devmap does not count %s under %v: use %v", one.is, program(workload), costmodel.Set(one.field, one.use))
		}
	}
	return nil
}

// program is the field that chose the engine.
func program(workload *costmodel.Workload) costmodel.Setting {
	if workload.Preset != "" {
		return costmodel.Set("preset", workload.Preset)
	}
	return costmodel.Set("runtime", workload.Runtime)
}

// Rules: every stage that uses a tied table has a copy.
func (megatron) Rules(workload *costmodel.Workload) layers.Rules {
	return layers.Rules{
		Compute: gathered(workload.Precision), Masters: true, GradsPersist: true, Megatron: true,
		Untied: workload.PP.Count() > 1 || workload.PP == costmodel.AutoDegree,
	}
}

// Regions adds TransformerEngine's workspace, and refuses layers that are not counted.
func (megatron) Regions(model *layers.Model, table *costmodel.Table) error {
	for i := range model.Layers {
		if layer := &model.Layers[i]; model.Train && layer.Runs && !layer.Cost.Known {
			if model.Workload.Preset != "" {
				return costmodel.Refuse(program(&model.Workload),
					"devmap counts dense decoders alone under Megatron, and layer %q is another: %v takes it", layer.Name, costmodel.Set("preset", "ms-swift"))
			}
			return costmodel.Refuse(program(&model.Workload),
				"devmap counts decoders of text with plain attention, feed-forward networks and routed experts under Megatron, and layer %q is another: %v with %v takes it", layer.Name, costmodel.Set("runtime", "torch"), costmodel.Set("strategy", costmodel.FSDP))
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
			layer := &model.Layers[i]
			out.Buffers += copies8(model, i)
			for _, tensor := range updated(&layer.Whole, model) {
				out.ResidentGrads += 4 * tensor.numel
				out.OptimizerState += 12 * shard.Share(tensor.numel, replicasOf(&model.Workload, layers.Routed(layer.Op, tensor.shape)))
			}
		}
	}
	if model.Workload.Float8 != "" {
		table.Band = max(table.Band, .1)
		warn(table, "FP8 was read in TransformerEngine, not measured: peaks are ±10 %%, and times count products in 16 bits")
	}
	if staged := model.Workload.Strategy.Traits().Staged; staged {
		spread(model, table)
		return
	}
	warn(table, "Megatron's layers were read, not measured: peaks are within 1%% of Megatron-LM's own figures for GPT, and within 10%% with rotary embeddings or without apex")
}

// copies8 are the 8-bit copies of a layer's weights by rows and by columns, kept between
// micro-batches (TransformerEngine, pytorch/module/base.py, get_weight_workspace: _fp8_workspaces).
// Blackwell's FP8 products take any layout and need one copy (is_non_tn_fp8_gemm_supported), so the
// plan is an upper bound there. Embedding and head have none.
func copies8(model *layers.Model, i int) int64 {
	layer := &model.Layers[i]
	if _, head := layer.Op.(modelgraph.Head); model.Workload.Float8 == "" || head {
		return 0
	}
	var elements int64
	for _, projection := range layers.Projections(model.Graph, i) {
		elements += layer.Params[projection.Param].Numel
	}
	for j := range layer.Params {
		if layers.Routed(layer.Op, layer.Params[j].Shape) {
			elements += layer.Params[j].Numel
		}
	}
	return 2 * elements
}

// replicasOf is over how many GPUs the optimizer's states of a weight are cut.
func replicasOf(workload *costmodel.Workload, routed bool) int64 {
	switch {
	case !workload.Strategy.Traits().Staged:
		return workload.World
	case workload.ShardDegree == 1:
		return 1 // without the distributed optimizer
	case routed:
		return max(1, workload.DP.Count()*workload.CP.Count()/workload.EP.Count())
	}
	return workload.DP.Count() * workload.CP.Count()
}

// spread warns of what routing adds to the busiest GPU.
func spread(model *layers.Model, table *costmodel.Table) {
	var more int64
	for i := range model.Layers {
		layer := &model.Layers[i]
		if op, routed := layer.Op.(modelgraph.MoE); routed && layer.Runs {
			each := layer.Shape.Routed * (2*op.Dim + 6*op.Hidden) / 10 // as ops.megatronExperts keeps
			if model.Recomputes {                                      // what torchtitan's have in one block
				more = max(more, each+layer.Shape.Routed*op.Hidden/5)
				continue
			}
			more += each
		}
	}
	if more > 0 {
		warn(table, "experts get the mean number of tokens: each 10%% more on the busiest GPU takes up to %v more over all layers (%v)", costmodel.Bytes(more), costmodel.Setting{Field: "expert_capacity"})
	}
}
