package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// deepspeed is DeepSpeed's ZeRO (0.19.8): model states as in
// deepspeed/runtime/zero/stage_1_and_2.py and stage3.py. Mixed precision casts the module
// (engine.py, _configure_distributed_model), without autocast.
type deepspeed struct{}

// Precision follows DeepSpeed's users: "bf16" enabled for a bf16 model and "fp16" for an fp16 one.
// These cast the whole module to 16 bits (deepspeed/runtime/engine.py,
// _configure_distributed_model) and keep fp32 master weights and states.
func (deepspeed) Precision(stored costmodel.Precision) (costmodel.Precision, bool) {
	switch stored {
	case costmodel.BF16True:
		return costmodel.BF16Mixed, false
	case costmodel.FP16True:
		return costmodel.FP16Mixed, false
	default:
		return stored, true
	}
}

// Adapters are cast with the module.
func (deepspeed) Adapters(workload *costmodel.Workload) (string, error) {
	adapters := adaptersAs(gathered(workload.Precision))
	if workload.LoRAPrecision == "" || workload.LoRAPrecision == adapters {
		return adapters, nil
	}
	return adapters, costmodel.Refuse(costmodel.Set("lora_precision", workload.LoRAPrecision),
		"DeepSpeed casts the whole module: under %v its adapters are %s, not %s", costmodel.Set("precision", workload.Precision), adapters, workload.LoRAPrecision)
}

// Refuse names unsupported fields. PEFT's QLoRA under ZeRO 3 keeps the packed weights on the GPUs
// (docs/source/accelerate/deepspeed.md, offload_param_device none). No document covers their offload.
func (deepspeed) Refuse(workload *costmodel.Workload) error {
	if err := checkDegree(workload); err != nil {
		return err
	}
	if workload.Quantize != "" && workload.Strategy.Traits().ZeroStage == 3 && settingsOf(workload).OffloadParams {
		return costmodel.Refuse(costmodel.Set("quantize", workload.Quantize),
			"DeepSpeed's offload_param has no documented support for bitsandbytes' %s weights: use %v, or keep the parameters on the GPUs", workload.Quantize, costmodel.Set("quantize", "off"))
	}
	return nil
}

func (deepspeed) Rules(workload *costmodel.Workload) layers.Rules {
	cut := workload.Strategy.Traits().Sharded
	return layers.Rules{
		Compute: gathered(workload.Precision), Masters: true, Cut: cut, GradsPersist: workload.MicroBatches > 1 && !cut,
		Padding:      !cut && workload.LoRARank > 0,
		LinearInputs: cut, // zero.Init puts its own linear function in place of torch's (zero/linear.py)
	}
}

// Regions does nothing: PyTorch's allocator places the tensors.
func (deepspeed) Regions(*layers.Model, *costmodel.Table) error { return nil }

// Finish cuts states over the ranks and adds what ZeRO 3 gathers.
func (deepspeed) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped = true
	stage := model.Workload.Strategy.Traits().ZeroStage
	if stage == 3 {
		gatherModules(model, table)
	}
	if model.Train {
		sum := zeroSum{model: model, stage: stage, set: settingsOf(&model.Workload), grad: ops.WeightBytes(model.Rules.Compute), master: ops.MixedPrecision(model.Workload.Precision)}
		sum.summed = sum.grad
		if sum.set.FP32Gradients {
			sum.summed = 4
		}
		for unit := range table.Units {
			sum.states(&table.Units[unit], model.Unit(unit))
		}
		table.Units[0].StepTransient = sum.step()
		if stage < 3 {
			sum.buckets(table)
		}
		sum.reductions(table)
		table.Units[0].Padding += sum.rounding()
		sum.warn(table)
		table.Marks = once(func() [][2]int64 { return marks(model) })
	}
}

// zeroSum adds up a rank's work in the optimizer's step.
type zeroSum struct {
	model     *layers.Model
	stage     int
	part      int64   // trained elements of the rank
	whole     int64   // and of all ranks
	parts     int64   // bytes of the rank's parts of all weights, frozen ones too
	largest   int64   // of one tensor
	groups    []int64 // of the parts that are updated one after another
	grad      int64   // bytes of a gradient's element
	summed    int64   // and of the sum of several
	set       zero.Settings
	master    bool  // the gradients are copied to fp32
	transient int64 // of the optimizer itself
}

// states sets a unit's states to one rank's. Flat buffers have no rounding of a tensor. ZeRO 1 and
// 2 flatten trained tensors alone (stage_1_and_2.py, __init__), and module.to places frozen ones.
func (sum *zeroSum) states(unit *costmodel.Unit, exec []int) {
	unit.OptimizerState, unit.StepTransient = 0, 0
	if !sum.model.Frozen || sum.stage == 3 {
		unit.Padding = 0
	}
	for _, i := range exec {
		if !sum.model.Layers[i].Runs {
			continue
		}
		for _, tensor := range updated(&sum.model.Layers[i].Whole, sum.model) {
			part := sum.share(tensor.numel)
			state, transient := sum.state(tensor, part)
			if sum.set.OffloadOptimizer {
				state, transient = 0, 0
			}
			unit.OptimizerState += state
			sum.transient += transient
			sum.part += part
			sum.whole += tensor.numel
			sum.largest = max(sum.largest, part)
			sum.group(part)
		}
	}
	sum.gradients(unit, exec)
}

// state is the optimizer state of a rank's shard of a tensor, on a flat partition: master weights
// and the rule's states, fp32 under mixed precision. Without mixed precision the master is still a
// copy. single_partition_of_fp32_groups is a clone (stage_1_and_2.py). _create_fp32_partitions
// compares a torch.device with a string, so it never shares (stage3.py). Moving averages are of
// whole weights in ZeRO 1 and 2.
func (sum *zeroSum) state(tensor updatedTensor, part int64) (state, transient int64) {
	rule, each := &sum.model.Optimizer, ops.WeightBytes(sum.model.Workload.Precision)
	var shape []int64
	if rule.Kind == value.Muon {
		shape = tensor.shape // its groups are distinguished before they are flattened
	}
	state, transient = rule.State(shape, part, each)
	state += part * each
	if rule.EMA && sum.stage < 3 {
		state += rule.Averaged(tensor.numel-part, each)
	}
	return state, transient
}

// gradients sets the result of a unit's backward. ZeRO 1 reduces after backward, so all gradients
// exist by then, and with several micro-batches throughout. ZeRO 2 copies each to the bucket, and
// the rank's reduced shard to a buffer with earlier micro-batches' sum (stage_1_and_2.py,
// copy_grads_in_partition). ZeRO 3 has a flat buffer for its shard throughout (stage3.py,
// grad_partitions_flat_buffer). Offloading moves both to host memory.
func (sum *zeroSum) gradients(unit *costmodel.Unit, exec []int) {
	if sum.stage == 1 && !sum.set.Overlap {
		unit.ResidentGrads = unit.ResidentGrads / sum.grad * sum.summed
		for k, i := range exec {
			step := &unit.Layers[k]
			step.Grads = step.Grads / sum.grad * sum.summed
			step.Backward = max(step.Backward, 2*sum.model.Layers[i].Grads.Second)
		}
		return
	}
	unit.ResidentGrads = 0
	if sum.stage == 3 && sum.set.OffloadParams && len(exec) > 0 {
		sum.parts += unit.Params
		unit.Params = 0
	}
	for k, i := range exec {
		grads, step := &sum.model.Layers[i].Grads, &unit.Layers[k]
		if sum.stage == 3 && !sum.set.OffloadOptimizer {
			unit.ResidentGrads += sum.share(grads.First-grads.Waits) / sum.grad * sum.summed
		}
		step.Grads = grads.Waits // a tied gradient waits whole for its last use
		step.Backward, step.BackwardGrads = step.AccumPeak, 0
		if grads.Second > 0 { // its sum is a tensor of its own
			step.Backward = max(step.Backward, 2*grads.Second)
		}
	}
}

// share is a rank's part of a number of elements or bytes, rounded up.
func (sum *zeroSum) share(whole int64) int64 {
	return shard.Share(whole, sum.model.Workload.ShardDegree)
}

// updatedTensor is a parameter that gets gradients.
type updatedTensor struct {
	shape []int64
	numel int64
}

// updated lists the parameters of a layer that get gradients.
func updated(whole *layers.Part, model *layers.Model) []updatedTensor {
	var out []updatedTensor
	if model.Frozen {
		for _, matrix := range whole.Matrices() {
			out = append(out, updatedTensor{matrix.Shape(), matrix.Numel()})
		}
		return out
	}
	if bytes, ok := whole.DeclaredBytes(); ok {
		return []updatedTensor{{nil, bytes / ops.WeightBytes(model.Workload.Precision)}}
	}
	for _, tensor := range whole.Owned() {
		if tensor.DType.Float() {
			out = append(out, updatedTensor{tensor.Shape, tensor.Numel})
		}
	}
	return out
}
