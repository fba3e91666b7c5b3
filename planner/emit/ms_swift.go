package emit

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// ms-swift reads Accelerate's object from the file that --device_map names
// (swift/utils/utils.py: json_parse_to_dict), or DeepSpeed's configuration.
var _ = register(&Target{
	Name: "ms-swift", Aliases: []string{"swift", "ms_swift"}, File: "device_map.json",
	Example: "gpt2 --gpus 2 --mode load", Golden: []string{"device-map", "zero1-true", "zero2", "zero3"},
	Write: func(to io.Writer, input *Input) error {
		if underZero(&input.Plan.Workload) {
			return deepSpeed.Write(to, input)
		}
		return accelerate.Write(to, input)
	},
	Usage: swift,
	file: func(plan *devicemap.Plan) string {
		if underZero(&plan.Workload) {
			return deepSpeed.File
		}
		return accelerate.File
	},
})

// underZero reports a plan for DeepSpeed.
func underZero(workload *costmodel.Workload) bool { return workload.Runtime == deepSpeedRuntime }

// swift is ms-swift's whole command: its own defaults are LoRA and
// checkpoints (swift/arguments/base_args/base_args.py, tuner_type;
// swift/trainers/arguments.py, gradient_checkpointing).
func swift(input *Input, file string) (usage, note string) {
	plan := input.Plan
	if !underZero(&plan.Workload) {
		return swiftCommand(plan, "--device_map "+quote.Path(file)), swiftNote(plan)
	}
	usage = "NPROC_PER_NODE=" + strconv.FormatInt(max(1, plan.Workload.World), 10) + " " + swiftCommand(plan, "--deepspeed "+quote.Path(file))
	if strings.Contains(usage, "--max_length") {
		note = "values that the file and the command both have must agree: Transformers refuses others (integrations/deepspeed.py, trainer_config_finalize)"
	}
	return usage, note
}

func swiftCommand(plan *devicemap.Plan, placed string) string {
	workload := &plan.Workload
	args := []string{"--model MODEL", placed}
	add := func(name, value string) { args = append(args, "--"+name+" "+value) }
	if a := attention(workload); a != "" {
		add("attn_impl", a)
	}
	switch workload.Quantize {
	case "nf4":
		add("quant_method", "bnb --quant_bits 4")
	case "int8":
		add("quant_method", "bnb --quant_bits 8")
	}
	if workload.Mode != costmodel.Train {
		if !workload.StoredTypes && workload.Precision != "" {
			add("torch_dtype", strings.TrimPrefix(loaded(workload), "torch."))
		}
		return "swift infer " + strings.Join(args, " ")
	}
	args = append(args, swiftPrecision(workload)...)
	if workload.LoRARank > 0 {
		add("tuner_type", "lora --lora_rank "+strconv.FormatInt(workload.LoRARank, 10)+" --target_modules "+shellWords(workload.LoRATargets))
	} else {
		add("tuner_type", "full")
	}
	add("per_device_train_batch_size", strconv.FormatInt(perDevice(workload), 10))
	// Its own default is 16 / (batch × processes), rounded up.
	add("gradient_accumulation_steps", strconv.FormatInt(max(1, workload.MicroBatches), 10))
	if workload.EvalBatch > 0 {
		add("per_device_eval_batch_size", strconv.FormatInt(workload.EvalBatch, 10))
	}
	add("max_length", strconv.FormatInt(workload.Seq, 10))
	switch workload.Packing {
	case "packed":
		add("packing", "true")
	case "padding-free":
		add("padding_free", "true")
	}
	if workload.MaxPixels > 0 {
		add("max_pixels", strconv.FormatInt(workload.MaxPixels, 10))
	}
	if workload.Liger {
		add("use_liger_kernel", "true")
	}
	add("gradient_checkpointing", strconv.FormatBool(workload.Recompute == costmodel.RecomputeFull))
	if optimizer := swiftOptimizers[workload.Optimizer]; optimizer != "" {
		add("optim", optimizer)
	}
	return "swift sft " + strings.Join(args, " ") + " --dataset DATASET"
}

// shellWords are texts as words of a shell.
func shellWords(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = quote.Shell(text)
	}
	return strings.Join(words, " ")
}

// swiftPrecision are the types of weights and compute. Weights in fp32 make
// it take fp16 unless it is set otherwise (model_args.py,
// _init_mixed_precision).
func swiftPrecision(workload *costmodel.Workload) []string {
	if workload.StoredTypes || workload.Precision == "" {
		return nil
	}
	kind := strings.TrimPrefix(loaded(workload), "torch.")
	if workload.Runtime == deepSpeedRuntime && workload.Precision != costmodel.FP32True { // its masters are its own
		kind = map[bool]string{true: "float16", false: "bfloat16"}[workload.Precision == costmodel.FP16Mixed]
	}
	out := []string{"--torch_dtype " + kind}
	if baseAsStored(workload) && workload.Runtime != deepSpeedRuntime {
		out = nil // the type in config.json is its default
	}
	switch workload.Precision {
	case costmodel.BF16Mixed:
		out = append(out, "--bf16 true")
	case costmodel.FP16Mixed:
		out = append(out, "--fp16 true")
	case costmodel.FP32True, costmodel.FP16True: // Trainer's loss scale refuses fp16 gradients
		out = append(out, "--fp16 false --bf16 false")
	default:
	}
	return out
}

// swiftOptimizers are Trainer's names of those that are not its default
// (transformers/training_args.py, OptimizerNames).
var swiftOptimizers = map[string]string{
	"adamw-foreach": "adamw_torch", "adamw-8bit": "adamw_bnb_8bit", "paged-adamw-8bit": "paged_adamw_8bit", "paged-adamw-32bit": "paged_adamw", "adamw-torch-8bit": "adamw_torch_8bit", "adamw-torch-4bit": "adamw_torch_4bit",
	costmodel.SGD: "sgd", "adafactor": "adafactor",
}

// swiftNote is both warnings, if there are both.
func swiftNote(plan *devicemap.Plan) string {
	notes := []string{otherBytes(plan, "ms-swift"), oneProcess(plan)}
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// oneProcess warns of what ms-swift makes of a map on several GPUs where it
// runs several processes (model_args.py, _init_device_map).
func oneProcess(plan *devicemap.Plan) string {
	gpus := make(map[devicemap.Device]bool)
	for _, entry := range plan.DeviceMap {
		if entry.Device >= 0 {
			gpus[entry.Device] = true
		}
	}
	if len(gpus) < 2 {
		return ""
	}
	return "the map is for one process: with NPROC_PER_NODE=n, rank r adds r to every device number in it, so that ranks meet on GPUs; for n processes of their own GPUs multiply the numbers by n first"
}
