package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// titan is torchtitan 0.3 with tensor, context or pipeline parallelism. It always has FSDP2, on one
// GPU too (models/llama3/parallelize.py, parallelize_llama), over replicas and parts of sequences
// (distributed/parallel_dims.py).
type titan struct{ pipeline }

// Precision is fp32 with bf16 products (config/configs.py, TrainingConfig).
func (titan) Precision(stored costmodel.Precision) (costmodel.Precision, bool) {
	return deepspeed{}.Precision(stored)
}

// Refuse names what is not counted.
func (titan) Refuse(workload *costmodel.Workload) error {
	return refuseFirst(workload, []refusal{
		{workload.Mode != costmodel.Train, "mode", string(workload.Mode), string(costmodel.Train)},
		{ops.HalfPrecision(workload.Precision), "precision", string(workload.Precision), string(costmodel.BF16Mixed)},
		{workload.Optimizer != costmodel.AdamW && workload.Optimizer != "adamw-foreach", "optimizer", workload.Optimizer, costmodel.AdamW},
		{workload.Loss != "" && workload.Loss != value.LossEager && workload.Loss != value.LossChunked, "loss", workload.Loss, value.LossChunked},
		{workload.Attention == value.EagerAttention, "attention", workload.Attention, value.SDPA},
		{workload.Liger, "liger", "true", ""},
		{workload.EMA, "ema", "true", ""},
		{workload.LossOnly, "loss_only", "true", ""},
		{workload.GradientViews, "gradient_as_bucket_view", "true", ""},
		{workload.BuiltOn == value.BuiltOnCPU, "built_on", workload.BuiltOn, "gpu"},
		{workload.LabelTokens > 0, "label_tokens", costmodel.Set("", workload.LabelTokens).Value, ""},
		{workload.LoRARank > 0, "lora_rank", costmodel.Set("", workload.LoRARank).Value, "0"},
		{workload.Quantize != "", "quantize", workload.Quantize, "off"},
	})
}

// Rules are the preset's. Every stage has copies of the parameters it uses.
func (titan) Rules(workload *costmodel.Workload) layers.Rules {
	rules := fsdp{}.Rules(workload)
	rules.Untied = workload.PP.Count() > 1
	return rules
}

// experts warns of what was read alone, and adds the counts of tokens and the biases of
// routing (torchtitan 0.3, models/common/moe.py, MoE._init_self_buffers).
func (titan) experts(model *layers.Model, table *costmodel.Table) {
	for i := range model.Layers {
		layer := &model.Layers[i]
		op, routed := layer.Op.(modelgraph.MoE)
		if !routed {
			continue
		}
		table.Units[layer.UnitIndex].Buffers += 2 * 512 * ((4*op.Experts + 511) / 512)
		if table.Band == 0 {
			table.Band = .1
			warn(table, "torchtitan's experts were read in its sources, and their tensors counted on a CPU, not measured on a GPU: peaks are ±10 %%")
		}
	}
	if model.Workload.EP.Count() > 1 {
		spread(model, table)
	}
}

func (of titan) Finish(model *layers.Model, table *costmodel.Table) {
	of.experts(model, table)
	if model.Workload.PP.Count() == 1 {
		fsdp{}.Finish(model, table)
		return
	}
	of.pipeline.Finish(model, table)
	table.Rotary = 0 // each block has its cosines and sines
	for i := range table.Groups {
		group := &table.Groups[i]
		if table.Units[group.Units[0]].Layers[0].Loss {
			wrapped := &shard.Group{Name: group.Name, Units: group.Units, Tail: true}
			*group = groupOf(model, wrapped).Group
		}
		if ops.MixedPrecision(model.Workload.Precision) {
			group.LastGrad *= 2 // in the type of the reduction
		}
	}
	for unit := range table.Units {
		out := &table.Units[unit]
		out.StatePadding = 0
		if last := len(out.Layers) - 1; last >= 0 && out.Layers[last].Loss {
			lossOfStage(model, table, unit)
		}
		if ops.MixedPrecision(model.Workload.Precision) {
			sumsFP32(out)
		}
	}
}

// lossOfStage adds the loss after a stage's forward to the head's figures. ChunkedLossWrapper reduces
// the head's gradient in each micro-batch. The reduction's input and both outputs stay until the next
// one. The head's gradient is a view of the first output. The norm's is a view of the second, as the
// second reduction includes it (torch 2.13, _fsdp_collectives.py, foreach_reduce: as_strided).
func lossOfStage(model *layers.Model, table *costmodel.Table, unit int) {
	out := &table.Units[unit]
	memory := &out.Layers[len(out.Layers)-1]
	memory.Forward = max(memory.Forward, memory.LossForward)
	for i := range table.Groups {
		group := &table.Groups[i]
		if group.Units[0] != unit || group.HeadReduce == 0 {
			continue
		}
		runs := max(1, model.Workload.MicroBatches)
		retained := group.HeadReduced * min(2, runs)
		reduces := memory.LossAlive + 2*group.HeadReduce
		if runs > 1 {
			retained += group.HeadReduce
			reduces -= group.HeadReduce
		}
		if runs > 2 { // its output is the third, and added to the first
			reduces += group.HeadReduced
		}
		out.ResidentGrads += retained
		memory.Forward = max(memory.Forward, reduces)
	}
}

// sumsFP32 is a unit with gradients cast to fp32 after its backward, and summed so over micro-batches
// (torch 2.13, _fsdp_param.py, to_accumulated_grad_if_needed). A micro-batch's own stay until then.
func sumsFP32(out *costmodel.Unit) {
	var made int64
	for k := len(out.Layers) - 1; k >= 0; k-- {
		memory := &out.Layers[k]
		memory.Backward, memory.BackwardGrads = memory.Backward+made, memory.BackwardGrads+made
		made += memory.Grads
		memory.AccumPeak, memory.Grads = memory.Backward, 0
	}
	if len(out.Layers) > 0 {
		first := &out.Layers[0]
		first.Grads = 2 * made
		first.Backward = max(first.Backward, 2*made-first.Saved)
	}
}

// tiedTwice is a tied head under torchtitan with tensor parallelism, which makes a new parameter of
// each module's table (torchtitan 0.3, protocols/module.py, _distribute_states). Under fully_shard
// init_states ties their shards again (models/common/decoder.py). FSDP2 gathers both, and reduces a
// gradient of each (torch 2.13, _fsdp_param.py, reset_sharded_param).
func (group *fsdpGroup) tiedTwice() {
	model := group.model
	if model.Rules.Modules != ops.Torchtitan || model.Workload.TP.Count() < 2 {
		return
	}
	again := tiedAgain(model, &group.Group)
	group.add(again, group.degree)
	group.cast += again
	if model.Train && model.Workload.Loss != value.LossChunked { // else the loss reduces the head's
		reduced := again / ops.WeightBytes(model.Rules.Compute) * ops.WeightBytes(model.Workload.Precision)
		group.Reduce, group.reduce, group.stored = group.Reduce+reduced, group.reduce+reduced, group.stored+reduced
		group.LastGrad = again
	}
}
