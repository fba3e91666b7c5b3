package estimate

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// moments adds a training program's work between steps, and optimizer states outside the allocator.
func moments(table *costmodel.Table, model *layers.Model) error {
	var paged int64
	for i := range model.Layers {
		paged += model.Layers[i].Shard.Paged()
	}
	if paged > 0 {
		table.Warnings = append(table.Warnings, costmodel.Messagef("%v of optimizer states are in CUDA's unified memory, outside PyTorch's allocator (bitsandbytes, get_paged): the driver keeps them on the GPU while there is room, so that used memory is up to %v higher, and else in host memory", costmodel.Bytes(paged), costmodel.Bytes(paged)))
	}
	saving(table, model)
	if model.Workload.EvalBatch == 0 {
		return nil
	}
	return evaluation(table, model)
}

// saving is the largest parameter. A full state dict gathers one after another and moves it to the host.
// DDP copies its own weights; ZeRO 3 gathers module by module, as in a step. Sources: accelerate 1.15,
// get_state_dict; torch 2.11, distributed/_state_dict_utils.py, _gather_state_dict.
func saving(table *costmodel.Table, model *layers.Model) {
	if !model.Rules.Cut || !trainer.Of(model.Workload.Preset).Path.StateDict || model.Workload.Strategy.Traits().ZeroStage < 3 {
		return
	}
	for i := range model.Layers {
		whole := &model.Layers[i].Whole
		if _, declared := whole.DeclaredBytes(); declared {
			continue
		}
		for j := range whole.Owned() {
			size := whole.Stored(j)
			table.Saving = max(table.Saving, size+allocator.Rounding(size))
		}
	}
}

// evaluation is the forward of transformers' Trainer.evaluate (trainer.py, evaluation_loop,
// prediction_step; TrainingArguments.use_cache is False). It has no gradients, the loss of all
// logits, and the logits of samples for metrics. Weights and optimizer states remain.
func evaluation(table *costmodel.Table, model *layers.Model) error {
	run := model.Workload
	run.Mode, run.Batch, run.MicroBatches, run.Recompute = costmodel.Infer, run.EvalBatch, 1, ""
	forward, err := layers.New(model.Tied, run, model.Rules)
	if err != nil {
		return err
	}
	out := *table
	out.Workload, out.Marks, out.LastGradients, out.Evaluation, out.Saving, out.Prepared = run, nil, false, nil, 0, 0
	out.Units, _ = layers.Units(forward)
	traits := run.Strategy.Traits()
	for i := range out.Units {
		unit := &out.Units[i]
		unit.OptimizerState, unit.Padding = table.Units[i].OptimizerState, table.Units[i].Padding
		if traits.ZeroStage == 3 { // a flat buffer throughout (deepspeed/runtime/zero/stage3.py, grad_partitions_flat_buffer)
			unit.ResidentGrads = table.Units[i].ResidentGrads
		}
		for k, at := range forward.Unit(i) {
			evaluates(&unit.Layers[k], &forward.Layers[at], &model.Layers[at], &table.Units[i].Layers[k])
		}
	}
	if rests, ok := model.Followed(); ok {
		layers.Spread(out.Units, rests[1])
	}
	out.OutputBytes, out.LossBytes, out.OutputsDropped = 0, 0, false
	table.Evaluation, table.Retained = &out, retained(forward)
	return nil
}

// evaluates changes a layer's inference into an evaluation. There is no cache, autocast keeps the
// 16-bit copies of trained weights until the forward ends, and the head computes the loss.
func evaluates(step *costmodel.LayerMemory, layer, training *layers.Layer, trains *costmodel.LayerMemory) {
	step.Forward -= step.KV
	step.KV, step.CacheGrowth = 0, 0
	step.Saved = training.Cost.Casts
	step.Forward += step.Saved
	step.GatheredForward = trains.GatheredForward
	head, ok := layer.Op.(modelgraph.Head)
	if !ok {
		return
	}
	shape := &layer.Shape
	if shape.Loss != "" && shape.Loss != value.LossEager && !head.Pooled {
		step.HeadPeak = trains.Forward // no logits either
		return
	}
	positions := shape.Logits
	if head.Pooled {
		positions = shape.Batch
	}
	// loss_utils.py ForCausalLMLoss: logits.float() and log-softmax, shifted labels; the
	// body's output is a variable of the model's forward.
	logits := positions * head.Vocab
	step.HeadPeak += 4*logits + 16*positions
	if ops.ComputeBytes(shape.Precision) < 4 {
		step.HeadPeak += 4 * logits
	}
	if ops.MixedPrecision(shape.Precision) {
		step.HeadPeak += (ops.StreamBytes(shape.Precision) - ops.ComputeBytes(shape.Precision)) * head.Dim * positions // the body's output is fp32
		if !training.Shape.Frozen {
			step.HeadPeak += ops.ComputeBytes(shape.Precision) * head.Dim * head.Vocab
		}
	}
}

// retained are the logits of samples: all during a forward, twice when a batch's join the earlier
// ones (trainer_pt_utils.py, EvalLoopContainer.add). Accelerate returns fp32 logits except under
// FSDP2 (accelerator.py, prepare_model: convert_outputs_to_fp32).
func retained(model *layers.Model) (bytes [2]int64) {
	run := &model.Workload
	each := ops.ComputeBytes(model.Rules.Compute)
	if ops.MixedPrecision(run.Precision) && !model.Rules.Cut {
		each = 4
	}
	for i := range model.Layers {
		if head, ok := model.Layers[i].Op.(modelgraph.Head); ok {
			positions := run.Seq
			if head.Pooled {
				positions = 1
			}
			bytes[0] += run.EvalSamples * positions * head.Vocab * each
		}
	}
	if run.EvalSamples > run.EvalBatch*max(1, run.World) {
		return [2]int64{bytes[0], 2 * bytes[0]}
	}
	return [2]int64{0, bytes[0]}
}

// compiled adds a step of the model as one graph of torch.compile. TorchInductor fuses norms,
// activations and the loss, and recomputes their results in backward. Graph breaks leave parts to
// the modules' own kernels, which usually take more. So peaks are between both.
func compiled(table *costmodel.Table, graph *modelgraph.Graph, run *costmodel.Workload, runtime engine.Engine) error {
	rules := runtime.Rules(run)
	rules.Compiled, rules.InParts = true, run.Strategy == costmodel.DDP && run.World > 1
	table.Least = &costmodel.Table{Workload: table.Workload}
	if err := fill(table.Least, graph, run, runtime, rules); err != nil {
		return err
	}
	table.Least.Evaluation, table.Least.Saving = nil, 0
	table.Warnings = append(table.Warnings, costmodel.Messagef("torch.compile: the peak is between that of one fused graph and that of the modules' own kernels, which graph breaks leave in place"))
	return nil
}

// checkMoments refuses evaluations, optimizers in backward, Liger and compilation that
// the program does not run or devmap does not count.
func checkMoments(workload *costmodel.Workload) error {
	path := &trainer.Of(workload.Preset).Path
	traits := workload.Strategy.Traits()
	switch {
	case workload.Mode != costmodel.Train:
		return checkUntrained(workload)
	case workload.EvalSamples > 0 && workload.EvalBatch == 0:
		return refuse("eval_samples", workload.EvalSamples, "logits of %d samples are kept by an evaluation: add %v", workload.EvalSamples, costmodel.Set("eval_batch", 8))
	case workload.EvalBatch > 0 && !path.Evaluates:
		return checkEvaluates(workload)
	case workload.EvalBatch > 0 && !traits.Replicated:
		return refuse("eval_batch", workload.EvalBatch, "devmap counts evaluations where each GPU runs the whole model, not under %v: leave it out, or use %v", costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.DDP))
	case workload.Compile && !compiles(workload):
		return checkCompiles(workload)
	case workload.Liger && (path.Modules != "" || path.Megatron):
		return refuse("liger", true, "%v has kernels of its own: leave it out", costmodel.Set("preset", workload.Preset))
	case workload.OptimizerInBackward:
		return checkInBackward(workload)
	}
	return nil
}

// checkUntrained refuses what training alone has.
func checkUntrained(workload *costmodel.Workload) error {
	train := costmodel.Set("mode", costmodel.Train)
	switch {
	case workload.EvalBatch > 0:
		return refuse("eval_batch", workload.EvalBatch, "it is of training: use %v", train)
	case workload.EvalSamples > 0:
		return refuse("eval_samples", workload.EvalSamples, "they are of training: use %v", train)
	case workload.Compile:
		return refuse("compile", true, "devmap counts torch.compile in training alone: add %v", train)
	case workload.Liger:
		return refuse("liger", true, "devmap counts Liger's kernels in training alone: add %v", train)
	case workload.OptimizerInBackward:
		return checkInBackward(workload)
	}
	return nil
}

// checkLiger refuses any loss other than Liger's.
func checkLiger(workload *costmodel.Workload) error {
	if !workload.Liger || workload.Loss == "" || workload.Loss == value.LossFused || workload.Loss == value.LossTiled && trainer.Of(workload.Preset).Path.LigerLayers {
		return nil
	}
	return refuse("liger", true, "Liger has a loss of its own, which %v is not: leave out one of both", costmodel.Set("loss", workload.Loss))
}

// checkEvaluates refuses an evaluation that the program does not make, or that is not counted.
func checkEvaluates(workload *costmodel.Workload) error {
	usual := trainer.Of(trainer.Usual)
	changed := *workload
	changed.Preset = usual.Name
	if workload.Preset == "" && workload.Mode == costmodel.Train && checkPreset(&changed) == nil {
		return refuse("eval_batch", workload.EvalBatch, "the evaluation is that of transformers' Trainer: leave it out, or add %v", costmodel.Set("preset", usual.Name))
	}
	return refuse("eval_batch", workload.EvalBatch, "devmap counts the evaluation of transformers' Trainer alone, which %v does not run under %v: leave it out",
		costmodel.Set("preset", trainer.Of(workload.Preset).Name), costmodel.Set("strategy", workload.Strategy))
}

// checkCompiles refuses compilation that is not counted. It suggests ddp if that works.
func checkCompiles(workload *costmodel.Workload) error {
	const counted = "devmap counts torch.compile of Transformers' models under ddp, FSDP2 and hsdp alone: leave it out"
	changed := *workload
	changed.Strategy, changed.Runtime = costmodel.DDP, ""
	if compiles(&changed) && checkPreset(&changed) == nil {
		return refuse("compile", true, counted+", or use %v", costmodel.Set("strategy", costmodel.DDP))
	}
	return refuse("compile", true, counted)
}

func compiles(workload *costmodel.Workload) bool {
	path := &trainer.Of(workload.Preset).Path
	if path.Modules != "" || path.Megatron || path.Flat || workload.HostShards {
		return false
	}
	return slices.Contains([]costmodel.Strategy{costmodel.DDP, costmodel.FSDP, costmodel.HSDP}, workload.Strategy) && workload.Runtime != value.JAX
}

// checkInBackward refuses an optimizer in backward if gradients are incomplete then.
func checkInBackward(workload *costmodel.Workload) error {
	switch {
	case trainer.Of(workload.Preset).Path.StepsAfter:
		return refuse("optimizer_in_backward", true, "%v steps after backward: leave out one of both", costmodel.Set("preset", workload.Preset))
	case workload.HostShards:
		return refuse("optimizer_in_backward", true, "devmap does not count it where the optimizer runs on the CPU: leave out one of both")
	case workload.MicroBatches > 1:
		return refuse("optimizer_in_backward", true, "each micro-batch would update the weights: use %v", costmodel.Set("micro_batches", 1))
	case workload.Runtime != value.Accelerate && workload.Runtime != value.Torch || workload.Strategy.Traits().Staged:
		return refuse("optimizer_in_backward", true, "devmap counts it under PyTorch's hooks (register_post_accumulate_grad_hook), not under %v: use fsdp, hsdp or device-map", costmodel.Set("strategy", workload.Strategy))
	case workload.Strategy == costmodel.DDP:
		return refuse("optimizer_in_backward", true, "DDP reduces gradients after the hook of each parameter, so that GPUs would update by their own: use %v, or %v for one GPU", costmodel.Set("strategy", costmodel.FSDP), costmodel.Set("strategy", costmodel.DeviceMap))
	}
	return nil
}

// checkTorchAO refuses torchao's optimizers if GPUs share a step.
func checkTorchAO(workload *costmodel.Workload) error {
	torchao := workload.Optimizer == value.AdamWTorch8bit || workload.Optimizer == value.AdamWTorch4bit
	if !torchao || workload.Strategy == costmodel.DDP || workload.Strategy.Traits().ByBlock || workload.Strategy.Traits().Open {
		return nil
	}
	return refuse("optimizer", workload.Optimizer, "devmap counts torchao's optimizers under ddp, FSDP2 and hsdp, not under %v: use %v", costmodel.Set("strategy", workload.Strategy), costmodel.Set("optimizer", value.AdamW8bit))
}

// checkFloat8 refuses torchao's 8-bit products if the program lacks them or devmap does not count them.
func checkFloat8(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	recipes := strings.Fields(trainer.Of(workload.Preset).Path.Float8)
	off := costmodel.Setting{Field: "float8"}
	has := func(what string) error {
		return refuse("float8", workload.Float8, "devmap does not count %s with 8-bit products: leave out one of both", what)
	}
	traits := workload.Strategy.Traits()
	switch {
	case workload.Float8 == "":
		return nil
	case workload.Mode != costmodel.Train:
		return refuse("float8", workload.Float8, "it is of training: use %v, or leave %v out", costmodel.Set("mode", costmodel.Train), off)
	case workload.Runtime == value.Megatron:
		return checkTransformerEngine(workload)
	case len(recipes) == 0:
		return refuse("float8", workload.Float8, "devmap counts torchao's linear layers under Accelerate, not under %v: use %v or axolotl, or leave %v out",
			costmodel.Set("preset", trainer.Of(workload.Preset).Name), costmodel.Set("preset", trainer.Usual), off)
	case !slices.Contains(recipes, workload.Float8):
		return refuse("float8", workload.Float8, "%v has the recipes %s: use %v", costmodel.Set("preset", workload.Preset), strings.Join(recipes, ", "), costmodel.Set("float8", recipes[0]))
	case workload.Strategy != costmodel.DDP && !traits.ByBlock:
		return refuse("float8", workload.Float8, "devmap counts it under ddp, FSDP2 and hsdp, not under %v: use %v", costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.FSDP))
	case workload.LoRARank > 0:
		return refuse("float8", workload.Float8, "devmap does not count adapters with 8-bit products: train in full with %v, or leave %v out", costmodel.Setting{Field: "lora_rank", Value: "0"}, off)
	case workload.Compile:
		return has("torch.compile")
	case workload.EvalBatch > 0:
		return has("evaluations")
	case upcasts8(workload) && workload.Precision != costmodel.BF16Mixed:
		return refuse("precision", workload.Precision, "Accelerate's FSDP2 makes trained weights fp32 with %v: use %v", costmodel.Set("float8", workload.Float8), costmodel.Set("precision", costmodel.BF16Mixed))
	case ops.HalfPrecision(workload.Precision) || workload.Precision == costmodel.FP32True:
		return refuse("float8", workload.Float8, "Accelerate runs the other layers in bf16: use %v", costmodel.Set("precision", costmodel.BF16Mixed))
	}
	return checkFloat8Layers(graph, workload)
}

// checkFloat8Layers refuses models with linear layers that are not counted.
func checkFloat8Layers(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		_, linear := layer.Op.(modelgraph.Linear)
		if ops.Products(layer.Op) && !ops.Float8s(layer.Op) && (linear || layer.Stream.Kind != modelgraph.Text || len(graph.Units[layer.UnitIndex].Exec) > 1) {
			return refuse("float8", workload.Float8, "devmap counts it in dense decoders of text, and layer %q is another: leave %v out", layer.Name, costmodel.Setting{Field: "float8"})
		}
	}
	return nil
}

// upcasts8 reports 8-bit products under Accelerate's FSDP2: its mixed precision is not
// "no" then, which makes weights fp32 (accelerate 1.15, fsdp2_prepare_model).
func upcasts8(workload *costmodel.Workload) bool {
	return workload.Float8 != "" && workload.Strategy.Traits().ByBlock && trainer.Of(workload.Preset).Path.Float8Pads
}

// checkBuilt refuses parameters of 8-bit floats under engines that train modules of their
// own, whatever dtype the config has (torchtitan, training.dtype; Megatron-LM, --bf16).
func checkBuilt(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	own := trainer.Of(workload.Preset).Path.Modules != "" || workload.Runtime == value.Torchtitan || workload.Runtime == value.Megatron
	if workload.Mode != costmodel.Train || !own || graph.Quantized != "" {
		return nil
	}
	for i := range graph.Layers {
		for _, param := range graph.Layers[i].Params {
			if param.DType.Bits() == 8 && !param.DType.Float() {
				return refuse("precision", workload.Precision, "the engine builds modules of its own, in fp32 or bf16, and %q is %v: set dtype to bfloat16 in the config",
					modelgraph.FullName(graph.Layers[i].Name, param.Name), param.DType)
			}
		}
	}
	return nil
}

// checkDecoder refuses models that the preset's program does not train. torchtune's and torchtitan's are
// counted as dense text decoders; TRL's losses need decoders (trl/trainer/utils.py, add_fused_lm_head).
func checkDecoder(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	path := &trainer.Of(workload.Preset).Path
	if workload.Mode != costmodel.Train || graph.Family == "" || path.Modules == "" && !path.HeadWhole {
		return nil
	}
	if hasTarget(graph) || CheckLengths(graph, true, false) != nil {
		return refuse("preset", workload.Preset, "it trains decoders of text, and %s is none: use %v", graph.Class, costmodel.Set("preset", "transformers"))
	}
	for i := range graph.Layers {
		_, routed := graph.Layers[i].Op.(modelgraph.MoE)
		if path.Modules != "" && (routed || graph.Layers[i].Stream.Kind == modelgraph.Image) {
			return refuse("preset", workload.Preset, "devmap counts dense decoders of text under it, and layer %q is another: use %v", graph.Layers[i].Name, costmodel.Set("preset", "transformers"))
		}
	}
	return nil
}

// checkTransformerEngine refuses recipes of 8-bit products that devmap does not count.
func checkTransformerEngine(workload *costmodel.Workload) error {
	if workload.Float8 == value.Tensorwise {
		return nil
	}
	return refuse("float8", workload.Float8, "of TransformerEngine's recipes devmap counts tensorwise: use %v", costmodel.Set("float8", value.Tensorwise))
}
