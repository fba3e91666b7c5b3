package ask

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// flags are all, in the order in which they are printed: those of a workload in the
// order of its fields, after those of the GPUs.
var flags = slices.Concat(deviceFlags, workloadFlags(), placementFlags, generationFlags, ownFlags, programFlags, runFlags, watchFlags, unbuiltFlags)

// workloadFlags sets what the workload's fields say of their flags.
func workloadFlags() []flag {
	fields := costmodel.Fields()
	out := make([]flag, len(fields))
	for i := range fields {
		field := &fields[i]
		f := ofWorkload[field.Name]
		f.name, f.field = strings.ReplaceAll(field.Name, "_", "-"), field
		f.on, f.hidden = working|executing, executing // whose plan has them
		f.at = func(request *Request) any { return field.Ref(&request.work) }
		f.values = slices.Concat(f.values, field.Values)
		if f.defaultValue == "" {
			f.defaultValue = field.Default
		}
		if field.Name == "strategy" {
			f.values = append(f.values, string(costmodel.Auto))
		}
		out[i] = f
	}
	return out
}

// ofWorkload are the flags that set a field of the workload, by the field.
var ofWorkload = map[string]flag{
	"mode": {
		help: "what to plan for: {values}",
		meant: map[string]string{
			"training": "train", "finetune": "train", "fine-tune": "train", "sft": "train", "pretrain": "train",
			"inference": "infer", "generate": "infer", "eval": "infer", "forward": "infer", "weights": "load", "loading": "load",
		},
	},
	"batch": {
		help: "sequences a step", counts: true, idle: []*idleness{nothingRuns},
		also: []string{"batch-size", "per-device-train-batch-size", "per_device_train_batch_size", "bs"},
	},
	"micro_batches": {
		help: "equal parts of the batch", counts: true, idle: []*idleness{nothingRuns},
		also: []string{"gradient-accumulation-steps", "gradient_accumulation_steps", "microbatches", "chunks"},
	},
	"seq": {
		help: "tokens a sequence (2048, or the model's maximum if smaller)", leftOut: "2048, or the model's maximum if smaller",
		idle: []*idleness{nothingRuns}, reopens: []string{"target-seq"}, // which is as --seq
		also: []string{"seq-len", "seq-length", "sequence-length", "max-length", "max_length", "max-seq-len", "max-model-len", "context"},
	},
	"target_seq": {
		help: "decoder tokens of an encoder–decoder (as --seq)", leftOut: "as --seq", idle: []*idleness{nothingRuns},
	},
	"new_tokens": {
		help: "tokens generated after the prompt (infer)",
		also: []string{"max-new-tokens", "max_new_tokens"},
	},
	"images": {
		help: "images a sequence (tiles, where a model cuts them up); their tokens are part of --seq", idle: []*idleness{nothingRuns},
	},
	"image_size": {
		help:    "side of the images in pixels, where the model takes any (1 megapixel)",
		leftOut: "1 megapixel, or the model's own", idle: []*idleness{nothingRuns},
	},
	"precision": {
		help: "{values} (as the checkpoint or config says; under zero1–3 bf16-mixed or 16-mixed)",
		meant: map[string]string{
			"bf16": "bf16-true or bf16-mixed", "bfloat16": "bf16-true or bf16-mixed", "fp16": "16-true or 16-mixed", "float16": "16-true or 16-mixed", "half": "16-true or 16-mixed", "16": "16-true or 16-mixed",
			"mixed": "bf16-mixed or 16-mixed", "amp": "bf16-mixed or 16-mixed", "fp16-mixed": "16-mixed", "fp16-true": "16-true",
			"fp32": "32-true", "float32": "32-true", "32": "32-true", "full": "32-true", "float": "32-true",
		},
		also: []string{"dtype", "torch-dtype", "torch_dtype", "bf16", "fp16"},
	},
	"optimizer": {
		help: "{values}", idle: []*idleness{noStep}, also: []string{"optim"},
		meant: map[string]string{
			"adam": "adamw", "adamw_torch": "adamw-foreach", "adamw_torch_fused": "adamw", "adamw-fused": "adamw", "adam8bit": "adamw-8bit", "adamw8bit": "adamw-8bit", "adamw_8bit": "adamw-8bit", "adamw_bnb_8bit": "adamw-8bit", "momentum": "sgd-momentum",
		},
	},
	"recompute": {
		help: "activations computed again in backward: {values}", idle: []*idleness{noStep},
		meant: map[string]string{"true": "full", "on": "full", "all": "full", "block": "full", "false": "none", "off": "none", "checkpointing": "full"},
		also:  []string{"gradient-checkpointing", "gradient_checkpointing", "activation-checkpointing"},
	},
	"lora_rank": {
		help: "rank of LoRA adapters; the model is frozen (none)", also: []string{"lora-r", "lora_rank"},
	},
	"lora_targets": {
		help: "modules that get adapters, by the end of their names: q_proj,v_proj",
	},
	"lora_precision": {
		help: "type of the adapters' weights: {values} (fp32, as PEFT makes them; the base's under fsdp, hsdp and zero1–3)",
	},
	"quantize": {
		help: "storage of the frozen linear layers: {values}", values: []string{"off"},
		meant: map[string]string{"4bit": "nf4", "4-bit": "nf4", "int4": "nf4", "fp4": "nf4", "bnb": "nf4 or int8", "8bit": "int8", "8-bit": "int8", "none": "off"},
		also:  []string{"load-in-4bit", "load-in-8bit"},
	},
	"loss": {
		help: "how the loss is computed: {values}", idle: []*idleness{noStep},
		meant: map[string]string{"liger": "fused", "cross-entropy": "eager"},
	},
	"attention": {
		help: "attention kernel: {values}", idle: []*idleness{nothingRuns},
		meant: map[string]string{"flash-attention": "flash", "flash_attention_2": "flash", "flash_attention_3": "flash", "fa2": "flash", "math": "eager"},
	},
	"loss_only": {
		help: "the caller keeps the loss alone, not the logits (always so under torch's engines)", idle: []*idleness{noStep, lossAlways},
	},
	"gradient_as_bucket_view": {
		help: "DDP's gradients are views of its buckets", idle: []*idleness{noStep, noBuckets},
	},
	"ema": {
		help: "a moving average of the trained weights stays on the GPU", idle: []*idleness{noStep},
	},
	"preset": {
		help: "whose defaults hold, or the trainer's own file: {values}",
	},
	"built_on": {
		help: "where the model is before FSDP2 shards it: {values}", idle: []*idleness{noStep},
	},
	"strategy": {
		help: "how the model is spread: {values}", defaultValue: string(costmodel.DeviceMap),
		// What an engine makes of adapters follows it.
		reopens: []string{"runtime", "lora-precision", "schedule", "virtual-stages", "dp", "tp", "shard-degree", "mem-fraction"},
		meant: map[string]string{
			"auto-map": "device-map", "device_map": "device-map", "naive": "device-map", "pp": "pipeline", "dp": "ddp", "data-parallel": "ddp", "zero": "zero1, zero2 or zero3", "zero-1": "zero1", "zero-2": "zero2", "zero-3": "zero3", "deepspeed": "zero1, zero2 or zero3",
			"fsdp1": "fsdp", "fsdp2": "fsdp", "full-shard": "fsdp", "full_shard": "fsdp", "hybrid": "hsdp", "hybrid-shard": "hsdp",
		},
		also: []string{"device-map"},
	},
	"runtime": {
		help:    "whose tensors are counted: {values} (accelerate for device-map, deepspeed for zero1–3, else torch; jax, as OpenPI's train.py runs it, fsdp; devmap, its own engine, device-map and pipeline)",
		reopens: []string{"lora-precision", "mem-fraction"},
		later:   []string{"megatron", "vllm", "llamacpp"},
		meant:   map[string]string{"transformers": "accelerate", "hf": "accelerate", "huggingface": "accelerate", "pytorch": "torch", "pytorch-lightning": "lightning", "pl": "lightning", "ds": "deepspeed", "openpi": "jax", "xla": "jax", "flax": "jax"},
	},
	"schedule": {
		help: "of a pipeline: {values} (1f1b)", idle: []*idleness{nothingRuns, noSchedule, allAlike}, reopens: []string{"virtual-stages"},
		later: []string{"zb-h1", "zb-h2", "zb-v"},
		meant: map[string]string{"1f1b-interleaved": "interleaved", "interleaved1f1b": "interleaved", "interleaved-1f1b": "interleaved", "interleaved_1f1b": "interleaved", "schedule1f1b": "1f1b", "schedulegpipe": "gpipe"},
	},
	"virtual_stages": {
		help: "runs a GPU, interleaved (2)", leftOut: "2", idle: []*idleness{noSchedule},
	},
	"dp": {
		benchmark: true, help: "replicas of each stage of a pipeline (data parallelism), or auto: chosen for each stage; --batch is then the whole step's",
		also: []string{"data-parallel", "data-parallel-size", "data_parallel_degree", "data-parallel-degree", "dp-size", "dp-degree"},
	},
	"tp": {
		benchmark: true, help: "GPUs that share the matrices of each stage of a pipeline (tensor parallelism), or auto: chosen for each stage",
		also: []string{"tensor-parallel", "tensor-parallel-size", "tensor_parallel_size", "tensor-parallel-degree", "tensor_parallel_degree", "tensor-model-parallel-size", "tp-size", "tp-degree"},
	},
	"shard_degree": {
		help: "GPUs that a parameter is cut over (all; hsdp: half; jax: 1, as OpenPI's fsdp_devices)", leftOut: "all GPUs; hsdp: half of them; jax: 1",
		also: []string{"fsdp-devices", "fsdp_devices"},
	},
	"mem_fraction": {
		help: "part of a GPU that JAX takes for its pool (0.75)",
		also: []string{"xla-python-client-mem-fraction"},
	},
}

var deviceFlags = []flag{
	{
		name: "gpus", at: func(request *Request) any { return &request.gpus }, on: placing | executing, hidden: executing, again: true,
		help: "how many GPUs, or their capacities: 4, or 80GiB,80GiB,24GiB, or 4x24GB; auto: this machine's, as devmap probe measures them",
		also: []string{"num-gpus", "ngpus", "n-gpus", "nproc-per-node", "devices", "gpu-count", "max-memory"},
	},
	{
		name: "gpu", at: func(request *Request) any { return &request.gpu }, on: placing | executing, hidden: executing, again: true, defaultValue: defaultGPU,
		help: "GPU of the catalogue: " + strings.Join(catalogue.Names(), ", "), offers: catalogue.Names(),
	},
	{
		name: "topology", at: func(request *Request) any { return &request.topology }, on: placing | executing, hidden: executing, again: true,
		help: "a topology file, instead of --gpus",
	},
	{
		name: "reserve", at: func(request *Request) any { return &request.reserve }, on: placing | executing, hidden: executing, again: true, each: true,
		help: "bytes to leave free: one for all devices, or one each; given again, they add up",
	},
}

var placementFlags = []flag{
	{
		name: "pin", at: func(request *Request) any { return &request.pins }, on: placing, hidden: onCheck, again: true, each: true,
		help: "LAYER=DEVICE; the layer may end in *",
	},
	{
		name: "together", at: func(request *Request) any { return &request.together }, on: placing, hidden: onCheck, again: true, each: true,
		help: "A,B: layers that share a device",
	},
	{
		name: "objective", at: func(request *Request) any { return &request.objective }, on: placing, hidden: onCheck, again: true, benchmark: true,
		defaultValue: string(planner.Memory), help: "what is minimised: {values}", values: []string{string(planner.Memory), string(planner.Time), string(planner.Latency), Front},
		meant: map[string]string{"speed": "time", "throughput": "time", "balance": "memory", "pareto": "front"},
	},
	{
		name: "contiguous", at: func(request *Request) any { return &request.Contiguous }, on: placing, hidden: onCheck, benchmark: true, defaultValue: "true",
		help: "one run of the chain a device; false: any unit on any device (device-map)",
	},
	{
		name: "offload", at: func(request *Request) any { return &request.offload }, on: placing, hidden: onCheck, defaultValue: noOffload,
		help: "units that may leave the GPUs: {values}", values: slices.Concat([]string{noOffload, string(planner.CPU), string(planner.Disk)}, offloadModes),
		meant: map[string]string{"off": "none", "ram": "cpu", "host": "cpu", "nvme": "disk", "ssd": "disk"},
	},
}

// ownFlags are those of the commands themselves.
var ownFlags = []flag{
	{
		name: "json", at: func(request *Request) any { return &request.JSON }, on: working | executing | onEmit | onProbe | onWatch, benchmark: true,
		helpOn: map[command]string{
			onPlan: "no table", onEstimate: "the machine form, no table",
			onCheck: "the machine form on stdout, no table", onInspect: "the machine form",
			onSimulate: "the machine form, no table", onRun: "the reports, no table", onEmit: "the program as JSON (--for program)", onProbe: "no table",
			onWatch: "the report, no table; what COMMAND writes to stdout goes to stderr",
		},
	},
	{
		name: "output", short: "o", at: func(request *Request) any { return &request.Output }, on: searching | onEmit | executing | onProbe | onWatch, benchmark: true, also: []string{"out"},
		helpOn: map[command]string{
			onPlan: "write the plan to a file", onEstimate: "write the rows to a file",
			onEmit: "write to a file, which appears whole or not at all", onSimulate: "write the machine form to a file",
			onRun: "write the reports to a file", onProbe: "write the topology to a file", onWatch: "write the report to a file",
		},
	},
	{
		name: "ds-config", at: func(request *Request) any { return &request.dsConfig }, on: placing, again: true,
		help: "DeepSpeed's configuration file: its stage is the strategy, and its sizes, batch and precision are the plan's",
		also: []string{"deepspeed", "deepspeed-config", "deepspeed_config", "ds_config"},
	},
	{
		name: "time-limit", at: func(request *Request) any { return &request.TimeLimit }, on: onPlan | onCheck, hidden: onCheck, benchmark: true, also: []string{"timeout"},
		defaultValue: planner.DefaultTimeLimit.String(), help: "then the best map, with its proven gap",
	},
	{
		name: "explain", at: func(request *Request) any { return &request.Explain }, on: onPlan, benchmark: true,
		help: "say which device and moment bind, and what would help",
	},
	{
		name: "for", at: func(request *Request) any { return &request.For }, on: onEmit, also: []string{"engine", "target"},
		help: "the engine: {values}", values: Targets(), meant: aliases(),
	},
}

// programFlags are those of what becomes a program.
var programFlags = []flag{
	{
		name: "model", at: func(request *Request) any { return &request.Model }, on: onEmit | executing,
		help: "the model that the plan is for (where the plan says it was)",
	},
	{
		name: "schedule-file", at: func(request *Request) any { return &request.ScheduleFile }, on: onSimulate,
		help: "a schedule as torch writes it (CSV, compute only), in place of the plan's",
	},
	{
		name: "trace", at: func(request *Request) any { return &request.Trace }, on: onSimulate,
		help: "write the step to a file that chrome://tracing and Perfetto open",
	},
}

// unbuiltFlags are flags of the contract that this version takes only at their
// default.
var unbuiltFlags = []flag{
	unbuilt("pp", "pipeline parallel degree"),
	unbuilt("cp", "context parallel degree"),
	unbuilt("ep", "expert parallel degree"),
	{
		name: "sequence-parallel", at: func(*Request) any { return new(string) }, on: working, hidden: working, defaultValue: "off", bare: "on",
		help: "sequence parallelism (not built yet)", values: []string{"off"}, later: []string{"on"},
	},
}

func unbuilt(name, what string) flag {
	return flag{
		name: name, help: what + " (not built yet)", at: func(*Request) any { return new(string) },
		on: working, hidden: working, defaultValue: "1", unbuilt: true,
	}
}
