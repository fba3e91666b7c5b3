package emit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// trainer is a training program that reads its whole job from one YAML file. The file
// has names in capitals for values that a plan lacks: MODEL, DATASET, TEMPLATE, OUTPUT.
type trainer struct {
	name, file string
	presets    []string // it takes plans of these
	strategies []costmodel.Strategy
	write      func(plan *devicemap.Plan) (mapping, error)
	form       func(to io.Writer, input *Input) error // in the place of write
	config     bool                                   // form needs the model's config.json
	start      string                                 // the command: file %[1]s on %[2]d GPUs
	// launch starts one host of several: FILE, TORCHRUN for torchrun's arguments,
	// MACHINE for the same in accelerate's, and PLACE in variables.
	launch, note string
}

var sharded = []costmodel.Strategy{costmodel.DDP, costmodel.FSDP, costmodel.Zero1, costmodel.Zero2, costmodel.Zero3}

// trainers are the programs, each a target.
var trainers = []*trainer{
	{
		name: "transformers", file: "training_args.yaml", presets: []string{"transformers"}, strategies: sharded, write: trainingArguments,
		start:  "torchrun --nproc_per_node %[2]d SCRIPT %[1]s",
		launch: `torchrun TORCHRUN SCRIPT FILE`,
		note:   "SCRIPT reads the file with HfArgumentParser(TrainingArguments).parse_yaml_file; model and sequences are SCRIPT's",
	},
	{
		name: "trl", file: "sft.yaml", presets: []string{"trl-sft"}, strategies: append([]costmodel.Strategy{costmodel.DeviceMap}, sharded...), write: trlArguments,
		start:  "trl sft --config %[1]s --num_processes %[2]d",
		launch: `torchrun TORCHRUN -m trl.scripts.sft --config FILE`,
		note:   "replace MODEL, DATASET and OUTPUT in the file",
	},
	{
		name: "llamafactory", file: "llamafactory.yaml", presets: []string{"llamafactory"}, strategies: sharded, write: llamaFactory,
		start:  "FORCE_TORCHRUN=1 NPROC_PER_NODE=%[2]d llamafactory-cli train %[1]s",
		launch: `env FORCE_TORCHRUN=1PLACE llamafactory-cli train FILE`,
		note:   "replace MODEL, DATASET, TEMPLATE and OUTPUT in the file",
	},
	{
		name: "axolotl", file: "axolotl.yaml", presets: []string{"axolotl"}, strategies: sharded, write: axolotl,
		start:  "axolotl train %[1]s --num-processes %[2]d",
		launch: `torchrun TORCHRUN -m axolotl.cli.train FILE`,
		note:   "replace MODEL, DATASET, TEMPLATE and OUTPUT in the file",
	},
	{
		name: "lightning", file: "lightning.yaml", presets: []string{"lightning", "lightning:model-parallel"},
		strategies: []costmodel.Strategy{costmodel.DDP, costmodel.FSDP}, form: lightningTrainer,
		start:  "python3 SCRIPT fit --config %[1]s",
		launch: `torchrun TORCHRUN SCRIPT fit --config FILE`,
		note:   "SCRIPT makes a LightningCLI; its model and its DataLoader, with batch and sequences, are not in the file",
	},
	{
		name: "accelerate-config", file: "accelerate.yaml", strategies: []costmodel.Strategy{costmodel.DDP, costmodel.FSDP, costmodel.HSDP}, form: accelerateConfig,
		presets: []string{"transformers", "transformers:fsdp1", "transformers:fsdp1-prefetch", "trl-sft", "trl-dpo", "trl-grpo", "llamafactory"},
		start:   "accelerate launch --config_file %[1]s SCRIPT",
		launch:  `accelerate launch --config_file FILEMACHINE SCRIPT`,
		note:    "the file says how processes start: batch, sequences, accumulation and optimizer are SCRIPT's",
	},
	{
		name: "torchtune", file: "torchtune.yaml", presets: []string{"torchtune"}, strategies: []costmodel.Strategy{costmodel.FSDP}, form: torchTune, config: true,
		start:  "tune run %[3]s --config %[1]s",
		launch: `tune run RECIPE --config FILE`,
		note:   "replace MODEL, TOKENIZER and OUTPUT in the file, and list the checkpoint's files in checkpoint_files",
	},
}

func init() {
	for _, trainer := range trainers {
		trainer.register()
	}
}

// register adds the program's target.
func (trainer *trainer) register() {
	register(&Target{
		Name: trainer.name, File: trainer.file, Config: trainer.config,
		Example: "llama-3.2-1b --gpus 2 --gpu h100-80gb --batch 1 --seq 1024 --preset " + trainer.presets[0], Golden: []string{"job-" + trainer.name},
		needs: []need{equalHosts, training(trainer.name + " trains"), trainer.preset, trainer.strategy},
		Write: trainer.print,
		Folder: func(input *Input) (map[string]string, error) {
			return folder(input, trainer.file, trainer.print, trainer.onHost(input.Plan, here(trainer.file)))
		},
		Usage: func(input *Input, file string) (usage, note string) {
			note = trainer.note
			if input.Plan.Workload.Float8 != "" && trainer.name == "accelerate-config" { // transformers/training_args.py, __post_init__
				note += ", whose TrainingArguments must have bf16=False, or it overwrites fp8"
			}
			return trainer.command(input.Plan, quote.Path(file)), note
		},
	})
}

// print writes the file.
func (trainer *trainer) print(to io.Writer, input *Input) error {
	if trainer.form != nil {
		return trainer.form(to, input)
	}
	keys, err := trainer.write(input.Plan)
	if err != nil {
		return err
	}
	return keys.print(to, headline(input.Plan))
}

// command starts the program with its file, on one host alone or on each of several.
func (trainer *trainer) command(plan *devicemap.Plan, file string) string {
	if hosts, _ := hostsOf(plan); hosts > 1 {
		return trainer.onHost(plan, file)
	}
	if trainer.name == "trl" && (plan.Workload.World == 1 && plan.Workload.Strategy.Traits().Sharded || plan.Workload.Strategy == costmodel.DeviceMap) {
		// accelerate launch starts one process without a group, and the Trainer refuses FSDP there.
		return trainer.onHost(plan, file)
	}
	return fmt.Sprintf(trainer.start, file, plan.Workload.World, recipe(&plan.Workload, fmt.Sprintf("--nproc_per_node %d ", plan.Workload.World)))
}

// onHost starts the program on a host whose variables say its place.
func (trainer *trainer) onHost(plan *devicemap.Plan, file string) string {
	if plan.Workload.Strategy == costmodel.DeviceMap { // a launcher's process drops the map (trl/trainer/sft_trainer.py)
		return "python3 -m trl.scripts.sft --config " + file
	}
	machine, place, arguments := "", "", torchrun(plan)
	if hosts, each := hostsOf(plan); hosts > 1 {
		machine = ` --machine_rank "$NODE_RANK" --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT"`
		place = fmt.Sprintf(` NNODES=%d NPROC_PER_NODE=%d NODE_RANK="$NODE_RANK" MASTER_ADDR="$MASTER_ADDR" MASTER_PORT="$MASTER_PORT"`, hosts, each)
	}
	return strings.NewReplacer(" TORCHRUN", " "+arguments, "RECIPE", recipe(&plan.Workload, arguments+" "), "MACHINE", machine, "PLACE", place, "FILE", file).Replace(trainer.launch)
}

// recipe is torchtune's, with torchrun's arguments; the one for one GPU takes none.
func recipe(workload *costmodel.Workload, arguments string) string {
	name, kind := "full_finetune", "_distributed"
	if workload.LoRARank > 0 {
		name = "lora_finetune"
	}
	if workload.World == 1 {
		kind, arguments = "_single_device", ""
	}
	return arguments + name + kind
}

// preset demands a plan that counts the memory of the program.
func (trainer *trainer) preset(plan *devicemap.Plan) error {
	preset := plan.Workload.Preset
	if preset == "" && plan.Workload.Runtime == "lightning" {
		preset = "lightning"
	}
	if slices.Contains(trainer.presets, preset) {
		return nil
	}
	if gridTargets[plan.Workload.Runtime] != "" {
		return deviceMap(plan) // which names them
	}
	if preset == "" {
		preset = "a loop written by hand"
	}
	return &refusal{costmodel.Messagef("the plan for %q counts the memory of %s, which is not that of %s: plan it with %v", plan.Model.Name, quote.Comment(preset), trainer.name, costmodel.Set("preset", trainer.presets[0]))}
}

// strategy demands one for which the program's file has a setting. The refusal names
// the files that have one for the plan.
func (trainer *trainer) strategy(plan *devicemap.Plan) error {
	strategy := plan.Workload.Strategy
	if slices.Contains(trainer.strategies, strategy) {
		return nil
	}
	var others []string
	for _, other := range trainers {
		if slices.Contains(other.strategies, strategy) && other.preset(plan) == nil {
			others = append(others, "emit --for "+other.name)
		}
	}
	if underZero(&plan.Workload) {
		others = append(others, "emit --for deepspeed")
	}
	if deviceMap(plan) == nil {
		others = append(others, "emit --for accelerate")
	}
	remedy := costmodel.Messagef("plan it with %v", costmodel.Set("strategy", trainer.strategies[0]))
	if len(others) > 0 {
		remedy = costmodel.Messagef("%s", strings.Join(others, ", or "))
	}
	return &refusal{costmodel.Messagef("the plan for %q has the strategy %s, and the file of %s has no setting for it: %v", plan.Model.Name, strategy, trainer.name, remedy)}
}

// perDevice are the sequences of one backward on a GPU.
func perDevice(workload *costmodel.Workload) int64 {
	return workload.Batch / max(1, workload.MicroBatches)
}

// optimizerOf is Transformers' name of an optimizer; empty: it has none.
func optimizerOf(workload *costmodel.Workload) string {
	if workload.Optimizer == costmodel.AdamW {
		return "adamw_torch_fused"
	}
	return swiftOptimizers[workload.Optimizer]
}

// arguments are the keys of Transformers' TrainingArguments that the programs share
// (transformers 5.24, training_args.py).
func arguments(plan *devicemap.Plan) (keys mapping, err error) {
	workload := &plan.Workload
	keys = mapping{
		{"output_dir", "OUTPUT"},
		{"per_device_train_batch_size", perDevice(workload)},
		{"gradient_accumulation_steps", max(1, workload.MicroBatches)},
	}
	keys.when(workload.EvalBatch > 0, entry{"eval_strategy", "epoch"}, entry{"per_device_eval_batch_size", workload.EvalBatch})
	keys.when(optimizerOf(workload) != "", entry{"optim", optimizerOf(workload)})
	keys.when(workload.Precision == costmodel.FP16Mixed, entry{"fp16", true})
	keys.when(workload.Compile, entry{"torch_compile", true})
	recomputes := workload.Recompute == costmodel.RecomputeFull
	switch {
	case workload.Strategy == costmodel.FSDP: // its own wrapper checkpoints (trainer.py refuses both)
		keys = append(keys, entry{"gradient_checkpointing", false}, entry{"fsdp", true}, entry{"fsdp_config", mapping{
			{"version", 2},
			{"reshard_after_forward", true},
			{"auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
			{"cpu_ram_efficient_loading", workload.BuiltOn == "cpu"},
			{"activation_checkpointing", recomputes},
			{"cpu_offload", workload.HostShards},
		}})
		return keys, nil
	case underZero(workload):
		config, err := inline(plan)
		if err != nil {
			return nil, err
		}
		keys = append(keys, entry{"deepspeed", config})
	}
	return append(keys, entry{"gradient_checkpointing", recomputes}), nil
}

func trainingArguments(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	keys, err := arguments(plan)
	keys.when(workload.Precision == costmodel.BF16Mixed && workload.Float8 == "", entry{"bf16", true}) // it overwrites fp8
	keys.when(workload.Liger, entry{"use_liger_kernel", true})
	return keys, err
}

// trlArguments are those of trl sft (trl 1.16, trainer/sft_config.py, model_config.py).
func trlArguments(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	keys := mapping{{"model_name_or_path", "MODEL"}, {"dataset_name", "DATASET"}, {"max_length", workload.Seq}}
	keys.when(workload.Packing == "packed", entry{"packing", true})
	keys.when(workload.Packing == "wrapped", entry{"packing", true}, entry{"packing_strategy", "wrapped"})
	keys.when(workload.Packing == "padding-free", entry{"padding_free", true})
	keys.when(workload.Precision == costmodel.BF16True, entry{"dtype", "bfloat16"})
	keys.when(workload.Precision == costmodel.FP16True, entry{"dtype", "float16"})
	keys.when(workload.Float8 != "" || !slices.Contains([]costmodel.Precision{costmodel.BF16Mixed, costmodel.BF16True}, workload.Precision), entry{"bf16", false})
	keys.when(attention(workload) != "", entry{"attn_implementation", attention(workload)})
	keys.when(workload.LoRARank > 0, entry{"use_peft", true}, entry{"lora_r", workload.LoRARank}, entry{"lora_target_modules", adapted(workload, "all-linear")})
	keys.when(workload.LoRARank > 0 && !workload.LoRADropout, entry{"lora_dropout", 0.0})
	keys.when(workload.Quantize == "nf4", entry{"load_in_4bit", true}, entry{"use_bnb_nested_quant", true})
	keys.when(workload.Quantize == "int8", entry{"load_in_8bit", true})
	keys.when(workload.Liger, entry{"use_liger_kernel", true})
	if workload.Strategy == costmodel.DeviceMap {
		units, err := yamlOf(func(to io.Writer) error { return cmp.Or(deviceMap(plan), flatMap(to, &Input{Plan: plan})) })
		if err != nil {
			return nil, err
		}
		keys = append(keys, entry{"model_init_kwargs", mapping{{"device_map", units}}})
	}
	shared, err := arguments(plan)
	return append(keys, shared...), err
}

// adapted are the modules with adapters; all is the program's word for every linear one.
func adapted(workload *costmodel.Workload, all string) any {
	if slices.Equal(workload.LoRATargets, []string{"all-linear"}) {
		return all
	}
	return workload.LoRATargets
}

// llamaFactory are the arguments of LLaMA-Factory 0.9.5 (hparams).
func llamaFactory(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	method := "full"
	if workload.LoRARank > 0 {
		method = "lora"
	}
	keys := mapping{
		{"model_name_or_path", "MODEL"},
		{"stage", "sft"},
		{"do_train", true},
		{"finetuning_type", method},
		{"dataset", "DATASET"},
		{"template", "TEMPLATE"},
		{"cutoff_len", workload.Seq},
	}
	if targets := adapted(workload, "all"); workload.LoRARank > 0 {
		if list, is := targets.([]string); is {
			targets = strings.Join(list, ",")
		}
		keys = append(keys, entry{"lora_rank", workload.LoRARank}, entry{"lora_target", targets})
		keys.when(workload.LoRADropout, entry{"lora_dropout", 0.05})
	}
	keys.when(workload.Packing == "wrapped", entry{"packing", true})
	keys.when(workload.Packing == "packed", entry{"neat_packing", true})
	keys.when(workload.EvalBatch > 0, entry{"val_size", evaluatedPart})
	keys.when(workload.MaxPixels > 0, entry{"image_max_pixels", workload.MaxPixels})
	keys.when(workload.Attention == "eager", entry{"flash_attn", "disabled"})
	keys.when(workload.Attention == "flash", entry{"flash_attn", "fa2"})
	keys.when(workload.Quantize == "nf4", entry{"quantization_bit", 4})
	keys.when(workload.Quantize == "int8", entry{"quantization_bit", 8})
	keys.when(workload.Liger, entry{"enable_liger_kernel", true})
	keys.when(workload.Precision == costmodel.BF16Mixed, entry{"bf16", true})
	keys.when(workload.Precision == costmodel.BF16True && (workload.LoRARank == 0 || workload.LoRAPrecision == "bf16"), entry{"bf16", true}, entry{"pure_bf16", true})
	keys.when(workload.Recompute == costmodel.RecomputeNone, entry{"disable_gradient_checkpointing", true})
	shared, err := arguments(plan)
	return append(keys, shared...), err
}
