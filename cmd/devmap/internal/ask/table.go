package ask

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// flags lists all flags in the order of printing: those of the GPUs, then those of the workload in
// the order of its fields.
var flags = slices.Concat(deviceFlags, workloadFlags(), placementFlags, servingFlags, generationFlags, ownFlags, programFlags, runFlags, watchFlags)

// workloadFlags completes the flags of the workload's fields.
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
		switch field.Name {
		case "cp", "ep", "pp", "sequence_parallel", "expert_capacity", "uniform": // of few engines: in the help of plan
			f.hidden |= working &^ onPlan
		case "offload_activations": // inspect has one GPU's costs and no stages
			f.on = placing | executing
		case "strategy":
			f.values = append(f.values, string(costmodel.Auto))
		case "preset":
			f.values = slices.Concat([]string{f.defaultValue}, f.values)
			f.on, f.hidden = f.on|onEmit, f.hidden|onEmit // likewise
		}
		out[i] = f
	}
	return out
}

// ofWorkload are the flags that set a field of the workload, by the field.
var ofWorkload = map[string]flag{
	"mode": {
		serves: true,
		help:   "{values}",
		meant: map[string]string{
			"training": "train", "finetune": "train", "fine-tune": "train", "sft": "train", "pretrain": "train",
			"inference": "infer", "generate": "infer", "eval": "infer", "forward": "infer", "weights": "load", "loading": "load", "serving": "serve",
		},
	},
	"batch": {
		help: "Sequences per step; per GPU under DDP, FSDP, ZeRO", counts: true, idle: []*idleness{nothingRuns},
		helpOn: map[command]string{onEstimate: "Sequences per step of all GPUs together"},
		also:   []string{"batch-size", "batchsize", "per-device-train-batch-size", "per_device_train_batch_size", "bs"},
	},
	"micro_batches": {
		help: "Micro-batches per step (gradient accumulation)", counts: true, idle: []*idleness{nothingRuns},
		also: []string{"gradient-accumulation-steps", "gradient_accumulation_steps", "microbatches", "chunks"},
	},
	"seq": {
		help: "Tokens per sequence [model maximum, at most 2048]", leftOut: "2048, or the model's maximum if smaller",
		idle: []*idleness{nothingRuns}, reopens: []string{"target-seq"}, // which is as --seq
		also: []string{"seq-len", "seq-length", "sequence-length", "max-length", "max_length", "max-seq-len", "max-seq-length", "max_seq_length", "cutoff-len", "cutoff_len"},
	},
	"target_seq": {
		help: "Decoder tokens of an encoder-decoder model [--seq]", leftOut: "as --seq", idle: []*idleness{nothingRuns},
	},
	"new_tokens": {
		help: "Tokens to generate after the prompt [0]",
		also: []string{"max-new-tokens", "max_new_tokens"},
	},
	"images": {
		help: "Images per sequence, within --seq", idle: []*idleness{nothingRuns},
	},
	"max_pixels": {
		help:    "Largest image area in pixels",
		leftOut: "the size of --image-size, or the model's own", idle: []*idleness{nothingRuns},
		also: []string{"max_pixels", "image-max-pixels", "image_max_pixels"},
	},
	"packing": {
		help: "Rows of samples: {values}", idle: []*idleness{noStep},
		meant: map[string]string{"bfd": "packed", "neat": "packed", "true": "packed", "on": "packed", "false": "none", "off": "none", "padded": "none", "flattening": "padding-free", "padding_free": "padding-free"},
		also:  []string{"neat-packing", "neat_packing", "sample-packing", "sample_packing"},
	},
	"label_tokens": {
		help: "Tokens of a sample that carry labels [all]", idle: []*idleness{noStep, completions},
	},
	"image_size": {
		help:    "Side of each image in pixels [about 1 megapixel]",
		leftOut: "1 megapixel, or the model's own", idle: []*idleness{nothingRuns},
	},
	"precision": {
		help: "Weight and compute type; see devmap help precision",
		meant: map[string]string{
			"bf16": "bf16-true or bf16-mixed", "bfloat16": "bf16-true or bf16-mixed", "fp16": "16-true or 16-mixed", "float16": "16-true or 16-mixed", "half": "16-true or 16-mixed", "16": "16-true or 16-mixed",
			"mixed": "bf16-mixed or 16-mixed", "amp": "bf16-mixed or 16-mixed", "fp16-mixed": "16-mixed", "fp16-true": "16-true",
			"fp32": "32-true", "float32": "32-true", "32": "32-true", "full": "32-true", "float": "32-true",
		},
		also: []string{"dtype", "torch-dtype", "torch_dtype", "bf16", "fp16"},
	},
	"optimizer": {
		help: "Optimizer; see devmap help optimizers", idle: []*idleness{noStep}, also: []string{"optim"},
		meant: map[string]string{
			"adam": "adamw", "adamw_torch": "adamw-foreach", "adamw_torch_fused": "adamw", "adamw-fused": "adamw", "adam8bit": "adamw-8bit", "adamw8bit": "adamw-8bit", "adamw_8bit": "adamw-8bit", "adamw_bnb_8bit": "adamw-8bit", "paged_adamw_8bit": "paged-adamw-8bit", "paged_adamw": "paged-adamw-32bit", "paged_adamw_32bit": "paged-adamw-32bit", "adamw_torch_8bit": "adamw-torch-8bit", "adamw_torch_4bit": "adamw-torch-4bit", "momentum": "sgd-momentum",
		},
	},
	"recompute": {
		help: "Recompute {values}, blocks 0-5", idle: []*idleness{noStep},
		meant: map[string]string{"true": "full", "on": "full", "all": "full", "block": "full", "false": "none", "off": "none", "checkpointing": "full"},
		also:  []string{"gradient-checkpointing", "gradient_checkpointing", "activation-checkpointing"},
	},
	"offload_activations": {
		help: "Offload activations: {values}, blocks 0-5", idle: []*idleness{noStep},
		meant: map[string]string{"true": "full", "on": "full", "all": "full", "cpu": "full", "host": "full", "false": "none", "off": "none"},
		also:  []string{"activation-offloading", "activation_offloading", "enable-activation-offloading", "cpu-offloading-activations"},
	},
	"lora_rank": {
		help: "Train LoRA adapters of this rank", also: []string{"lora-r", "lora_rank", "lora", "qlora", "rank"},
	},
	"lora_targets": {
		help: "Modules with adapters, as q_proj,v_proj",
	},
	"lora_precision": {
		help: "Adapter type: {values} [fp32, or the base's]",
	},
	"lora_dropout": {
		help: "Adapters drop out some of their input", idle: []*idleness{noStep},
	},
	"quantize": {
		help: "Quantize frozen linear layers: {values}", values: []string{"off"},
		meant: map[string]string{"4bit": "nf4", "4-bit": "nf4", "int4": "nf4", "fp4": "nf4", "bnb": "nf4 or int8", "8bit": "int8", "8-bit": "int8", "none": "off"},
		also:  []string{"load-in-4bit", "load-in-8bit", "quantization", "quantization-bit", "bits"},
	},
	"float8": {
		help: "torchao's 8-bit products; see devmap help precision", values: []string{"off"}, idle: []*idleness{noStep},
		meant: map[string]string{"true": "tensorwise", "on": "tensorwise", "fp8": "tensorwise", "torchao": "tensorwise", "tensor": "tensorwise", "row": "rowwise", "none": "off"},
		also:  []string{"fp8"},
	},
	"loss": {
		help: "Loss: {values}", idle: []*idleness{noStep},
		meant: map[string]string{"liger": "fused", "cross-entropy": "eager"},
	},
	"attention": {
		help: "Attention kernel: {values}", idle: []*idleness{nothingRuns},
		meant: map[string]string{"flash-attention": "flash", "flash_attention_2": "flash", "flash_attention_3": "flash", "fa2": "flash", "math": "eager"},
		also:  []string{"flash-attention", "flash-attn", "attn-implementation", "attn_implementation", "attn-impl", "attn_impl"},
	},
	"kernels": {
		help: "Source of Mamba-2's kernels: {values}", idle: []*idleness{nothingRuns},
		meant: map[string]string{"mamba-ssm": "package", "mamba_ssm": "package", "transformers": "torch"},
	},
	"loss_only": {
		help: "The training loop discards the logits", idle: []*idleness{noStep, lossAlways},
	},
	"gradient_as_bucket_view": {
		help: "DDP: gradients are views of buckets", idle: []*idleness{noStep, noBuckets},
	},
	"optimizer_in_backward": {
		help: "Update weights in backward (optimizer_in_bwd)", idle: []*idleness{noStep}, also: []string{"optimizer-in-bwd", "optimizer_in_bwd"},
	},
	"liger": {
		help: "Use Liger's kernels", idle: []*idleness{noStep}, also: []string{"use-liger-kernel", "use_liger_kernel"},
	},
	"compile": {
		help: "Run torch.compile; the peak is a range", idle: []*idleness{noStep}, also: []string{"torch-compile", "torch_compile"},
	},
	"eval_batch": {
		help: "Evaluation batch per GPU [0]", idle: []*idleness{noStep}, also: []string{"per-device-eval-batch-size", "per_device_eval_batch_size"},
	},
	"eval_samples": {
		help: "Evaluation samples with kept logits [0]", idle: []*idleness{noStep},
	},
	"ema": {
		help: "Keep a moving average of the weights", idle: []*idleness{noStep},
	},
	"preset": {
		help: "Trainer defaults: a name or file; see help presets", defaultValue: string(costmodel.Auto),
		meant: map[string]string{
			"trainer": "transformers", "hf": "transformers", "huggingface": "transformers", "accelerate": "transformers or accelerate-loop", "default": "auto", "none": "accelerate-loop", "loop": "accelerate-loop",
			"trl": "trl-sft", "sft": "trl-sft", "swift": "ms-swift", "megatron": "ms-swift-megatron", "llama-factory": "llamafactory", "llama_factory": "llamafactory", "pytorch-lightning": "lightning", "pl": "lightning", "openpi": "openpi:pi0_libero",
		},
	},
	"built_on": {
		help: "FSDP2's whole model: {values} [gpu if it fits]", idle: []*idleness{noStep, notPrepared},
	},
	"strategy": {
		help: "Parallelism; see devmap help strategies", defaultValue: string(costmodel.DeviceMap),
		// An engine's precision of adapters follows it.
		reopens: []string{"runtime", "lora-precision", "schedule", "virtual-stages", "dp", "tp", "cp", "ep", "pp", "sequence-parallel", "expert-capacity", "uniform", "shard-degree", "mem-fraction"},
		meant: map[string]string{
			"auto-map": "device-map", "device_map": "device-map", "naive": "device-map", "pp": "pipeline", "dp": "ddp", "data-parallel": "ddp", "zero": "zero1, zero2 or zero3", "zero-1": "zero1", "zero-2": "zero2", "zero-3": "zero3", "deepspeed": "zero1, zero2 or zero3",
			"fsdp1": "fsdp", "fsdp2": "fsdp", "full-shard": "fsdp", "full_shard": "fsdp", "hybrid": "hsdp", "hybrid-shard": "hsdp",
		},
		also: []string{"device-map", "fsdp", "ddp", "zero", "zero-stage", "sharding"},
	},
	"runtime": {
		serves:  true,
		help:    "Engine to model; see help strategies [by --strategy]",
		reopens: []string{"lora-precision", "mem-fraction"},
		meant:   map[string]string{"llamacpp": "llama.cpp", "llama-cpp": "llama.cpp", "llama_cpp": "llama.cpp", "llama-server": "llama.cpp", "ollama": "llama.cpp", "transformers": "accelerate", "hf": "accelerate", "huggingface": "accelerate", "pytorch": "torch", "pytorch-lightning": "lightning", "pl": "lightning", "ds": "deepspeed", "openpi": "jax", "xla": "jax", "flax": "jax"},
	},
	"schedule": {
		help: "Pipeline schedule (devmap help strategies) [1f1b]", idle: []*idleness{nothingRuns, noSchedule, allAlike}, reopens: []string{"virtual-stages"},
		later: []string{"zb-h2"},
		meant: map[string]string{"1f1b-interleaved": "interleaved", "interleaved1f1b": "interleaved", "interleaved-1f1b": "interleaved", "interleaved_1f1b": "interleaved", "schedule1f1b": "1f1b", "schedulegpipe": "gpipe"},
	},
	"virtual_stages": {
		help: "Stages per GPU with --schedule interleaved [2]", leftOut: "2", idle: []*idleness{noSchedule},
	},
	"dp": {
		benchmark: true, help: "Data-parallel replicas per stage [1 or the rest]", serves: true, engines: ranked,
		accepts: []string{"data-parallel-size", "dp-size"},
		also:    []string{"data-parallel", "data_parallel_degree", "data-parallel-degree", "dp-degree"},
	},
	"tp": {
		benchmark: true, help: "Tensor-parallel GPUs per pipeline stage [1]", serves: true, engines: ranked,
		accepts: []string{"tensor-parallel-size", "tp-size"},
		also:    []string{"tensor-parallel", "tensor_parallel_size", "tensor-parallel-degree", "tensor_parallel_degree", "tensor-model-parallel-size", "tp-degree"},
	},
	"cp": {
		help: "Context-parallel GPUs: parts of a sequence [1]", also: []string{"context-parallel", "context-parallel-size", "context_parallel_degree"},
	},
	"ep": {
		help: "Expert-parallel GPUs: parts of the experts [1]", serves: true, engines: ranked, accepts: []string{"ep-size"}, also: []string{"enable-expert-parallel", "enable_expert_parallel", "expert-parallel", "expert-model-parallel-size", "expert_parallel_degree"},
	},
	"pp": {
		help: "Pipeline stages [what dp, tp and cp leave, or 1]", serves: true, engines: ranked, leftOut: "what the other degrees leave",
		accepts: []string{"pipeline-parallel-size", "pp-size"},
		also:    []string{"pipeline-parallel", "pipeline-model-parallel-size", "pipeline_parallel_degree"},
	},
	"sequence_parallel": {
		help: "Cut norms and residuals over --tp (Megatron)", also: []string{"sequence-parallel-enabled"},
	},
	"expert_capacity": {
		help: "Tokens of the busiest experts, over the mean [1]",
	},
	"uniform": {
		help: "All stages have the same degrees and recomputation",
	},
	"shard_degree": {
		help: "GPUs that share one copy of each parameter [all]", leftOut: "all GPUs; hsdp: half of them; jax: 1",
		also: []string{"fsdp-devices", "fsdp_devices"},
	},
	"mem_fraction": {
		help: "Part for JAX, a server [0.75; 0.92]", serves: true, engines: ranked,
		accepts: []string{"gpu-memory-utilization", "mem-fraction-static"},
		also:    []string{"xla-python-client-mem-fraction", "gpu_memory_utilization", "mem_fraction_static"},
	},
}

var deviceFlags = []flag{
	{
		name: "gpus", at: func(request *Request) any { return &request.gpus }, serves: true, on: placing | executing, hidden: executing, again: true,
		help: "GPU count, memory sizes (24GiB,48GiB), or auto",
		also: []string{"num-gpus", "ngpus", "n-gpus", "nproc-per-node", "devices", "gpu-count", "max-memory", "memory", "gpu-memory", "vram"},
	},
	{
		name: "gpu", at: func(request *Request) any { return &request.gpu }, serves: true, on: placing | executing, hidden: executing, again: true, defaultValue: defaultGPU,
		help: "GPU model; see devmap help gpus", offers: catalogue.Names(),
	},
	{
		name: "topology", at: func(request *Request) any { return &request.topology }, serves: true, on: placing | executing, hidden: executing, again: true,
		help: "Topology file, or report of a run on GPUs",
	},
	{
		name: "nodes", at: func(request *Request) any { return &request.nodes }, on: placing, again: true, defaultValue: "1",
		help: "Hosts that share the GPUs", also: []string{"nnodes", "num-nodes", "num_nodes", "num-machines", "num_machines", "hosts"},
	},
	{
		name: "reserve", at: func(request *Request) any { return &request.reserve }, serves: true, on: placing | executing, hidden: executing, again: true, each: true,
		help: "Memory to leave free on each GPU; repeatable, adds up",
	},
}

var placementFlags = []flag{
	{
		name: "pin", at: func(request *Request) any { return &request.pins }, on: placing, hidden: onCheck, again: true, each: true,
		help: "Place a layer on this GPU; LAYER may end in *",
	},
	{
		name: "together", at: func(request *Request) any { return &request.together }, on: placing, hidden: onCheck, again: true, each: true,
		help: "Keep these layers on one GPU",
	},
	{
		name: "objective", at: func(request *Request) any { return &request.objective }, on: placing, hidden: onCheck, again: true, benchmark: true,
		defaultValue: string(planner.Memory), help: "memory, time, latency, or front for all trade-offs", values: []string{string(planner.Memory), string(planner.Time), string(planner.Latency), Front},
		meant: map[string]string{"speed": "time", "throughput": "time", "balance": "memory", "pareto": "front"},
	},
	{
		name: "contiguous", at: func(request *Request) any { return &request.Contiguous }, on: placing, hidden: onCheck, benchmark: true, defaultValue: "true",
		help: "One contiguous block of layers per GPU [true]",
	},
	{
		name: "offload", at: func(request *Request) any { return &request.offload }, on: placing, hidden: onCheck, defaultValue: noOffload,
		help: "Move units off the GPUs; see devmap help offload", values: slices.Concat([]string{noOffload, string(planner.CPU), string(planner.Disk)}, offloadModes),
		meant: map[string]string{"off": "none", "ram": "cpu", "host": "cpu", "nvme": "disk", "ssd": "disk"},
	},
}

// ownFlags are the flags about the commands themselves.
var ownFlags = []flag{
	{
		name: "json", at: func(request *Request) any { return &request.JSON }, serves: true, on: working | executing | onEmit | onProbe | onWatch | onReport, benchmark: true,
		helpOn: map[command]string{
			onPlan: "Print JSON only, no table", onEstimate: "Print JSON only, no table", onCheck: "Print JSON only, no table",
			onInspect: "Print JSON only, no table", onSimulate: "Print JSON only, no table", onRun: "Print the JSON report only, no table",
			onEmit: "Write the program as JSON (--for program)", onProbe: "Print JSON only, no table",
			onWatch: "Print the JSON report; COMMAND's output goes to stderr", onReport: "Write the page's data as JSON, not the page",
		},
	},
	{
		name: "output", short: "o", at: func(request *Request) any { return &request.Output }, serves: true, on: searching | onEmit | executing | onProbe | onWatch | onReport, benchmark: true, also: []string{"out"},
		helpOn: map[command]string{
			onPlan: "Write the plan to FILE [standard output]", onEstimate: "Write the rows to FILE as JSON",
			onEmit: "Write to FILE, atomically [standard output]", onSimulate: "Write the simulation to FILE as JSON",
			onRun: "Write the reports to FILE as JSON", onProbe: "Write the topology to FILE [standard output]", onWatch: "Write the report to FILE as JSON",
			onReport: "Write the page to FILE [standard output]",
		},
	},
	{
		name: "transformers", at: func(request *Request) any { return &request.Transformers }, serves: true, engines: ranked, on: working | onEmit, again: true,
		help: "Release of Transformers, as 5.20 [the config's]",
		also: []string{"transformers-version", "transformers_version"},
	},
	{
		name: "dim", at: func(request *Request) any { return &request.Dims }, on: working, hidden: searching, again: true, each: true,
		help: "Size of a symbolic dimension of ONNX; repeatable",
	},
	{
		name: "report", at: func(request *Request) any { return &request.Report }, serves: true, on: onPlan | onRun | onWatch,
		help: "Write pictures to FILE", also: []string{"html"},
	},
	{
		name: "emit", at: func(request *Request) any { return &request.Emit }, on: onPlan, values: []string{"slurm", "kubernetes"},
		help: "Write the job for {values}; -o names its folder", meant: map[string]string{"sbatch": "slurm", "k8s": "kubernetes", "kubeflow": "kubernetes", "jobset": "kubernetes", "trainjob": "kubernetes"},
	},
	{
		name: "force", at: func(request *Request) any { return &request.Force }, serves: true, on: searching | onEmit | executing | onProbe | onWatch | onReport, hidden: onEstimate, benchmark: true,
		help: "Replace existing files", also: []string{"overwrite"},
	},
	{
		name: "ds-config", at: func(request *Request) any { return &request.dsConfig }, on: placing, again: true,
		help: "Read DeepSpeed's settings from FILE",
		also: []string{"deepspeed", "deepspeed-config", "deepspeed_config", "ds_config"},
	},
	{
		name: "lengths", at: func(request *Request) any { return &request.lengths }, on: placing, again: true, idle: []*idleness{noStep},
		help: "Sample lengths in tokens [all have --seq]",
	},
	{
		name: "time-limit", at: func(request *Request) any { return &request.TimeLimit }, serves: true, on: placing, hidden: onCheck, benchmark: true, also: []string{"timeout"},
		defaultValue: planner.DefaultTimeLimit.String(), help: "Stop the search and report the gap",
	},
	{
		name: "explain", at: func(request *Request) any { return &request.Explain }, on: onPlan, benchmark: true,
		help: "Show what limits, and what would help",
	},
	{
		name: "run", at: func(request *Request) any { return &request.Try }, on: onCheck,
		help: "Run a step under the map in Python, without a GPU",
	},
	{
		name: "for", at: func(request *Request) any { return &request.For }, on: onEmit, also: []string{"engine", "target"},
		help: "Engine that reads the file; the examples list all", values: Targets(), meant: aliases(),
	},
}

// programFlags are the flags about a program of a plan.
var programFlags = []flag{
	{
		name: "model", at: func(request *Request) any { return &request.Model }, on: onEmit | executing | onReport,
		help: "Folder or file of the model [as in the plan]",
	},
	{
		name: "schedule-file", at: func(request *Request) any { return &request.ScheduleFile }, on: onSimulate,
		help: "Use this schedule, a CSV file as torch writes it",
	},
	{
		name: "trace", at: func(request *Request) any { return &request.Trace }, on: onSimulate,
		help: "Write a trace for Perfetto or chrome://tracing to FILE",
	},
}
