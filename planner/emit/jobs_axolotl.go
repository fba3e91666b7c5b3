package emit

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// evaluatedPart is the part of the data set that a program evaluates, in files that must name one.
const evaluatedPart = 0.1

// axolotl is a configuration of axolotl 0.19 (utils/schemas/config.py).
func axolotl(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	if workload.Strategy == costmodel.FSDP && strings.HasSuffix(workload.Optimizer, "-8bit") { // utils/schemas/validation.py
		return nil, &refusal{costmodel.Messagef("the plan for %q has the optimizer %s, which axolotl refuses under FSDP2: plan it with %v", plan.Model.Name, workload.Optimizer, costmodel.Set("optimizer", costmodel.AdamW))}
	}
	if workload.Precision == costmodel.BF16True && workload.LoRARank > 0 { // utils/schemas/config.py: bf16; core/builders/base.py, _configure_precision_settings
		return nil, &refusal{costmodel.Messagef("the plan for %q has adapters without autocast, and axolotl 0.19 trains bf16 with it: plan it with %v", plan.Model.Name, costmodel.Set("precision", costmodel.BF16Mixed))}
	}
	keys := mapping{
		{"base_model", "MODEL"},
		{"datasets", []mapping{{{"path", "DATASET"}, {"type", "TEMPLATE"}}}},
		{"output_dir", "OUTPUT"},
		{"num_epochs", 1},
		{"learning_rate", 0.0002},
		{"sequence_len", workload.Seq},
		{"micro_batch_size", perDevice(workload)},
		{"gradient_accumulation_steps", max(1, workload.MicroBatches)},
		{"bf16", workload.Precision == costmodel.BF16Mixed || workload.Precision == costmodel.BF16True},
		{"gradient_checkpointing", workload.Recompute == costmodel.RecomputeFull && workload.Strategy != costmodel.FSDP},
	}
	keys.when(workload.Precision == costmodel.FP16Mixed && (workload.LoRARank > 0 || underZero(workload)), entry{"fp16", true})
	keys.when(workload.Packing == "packed", entry{"sample_packing", true})
	keys.when(workload.EvalBatch > 0, entry{"val_set_size", evaluatedPart}, entry{"eval_strategy", "epoch"}, entry{"eval_batch_size", workload.EvalBatch})
	keys.when(attention(workload) != "", entry{"attn_implementation", attention(workload)})
	keys = append(keys, axolotlKernels(workload)...)
	if workload.LoRARank > 0 {
		method := "lora"
		if workload.Quantize == "nf4" {
			method = "qlora"
		}
		keys = append(keys, entry{"adapter", method}, entry{"lora_r", workload.LoRARank}, entry{"lora_alpha", workload.LoRARank})
		all := slices.Equal(workload.LoRATargets, []string{"all-linear"})
		keys.when(all, entry{"lora_target_linear", true})
		keys.when(!all, entry{"lora_target_modules", workload.LoRATargets})
		keys.when(workload.LoRADropout, entry{"lora_dropout", 0.05})
	}
	keys.when(workload.Quantize == "nf4", entry{"load_in_4bit", true})
	keys.when(workload.Quantize == "int8", entry{"load_in_8bit", true})
	keys.when(optimizerOf(workload) != "", entry{"optimizer", optimizerOf(workload)})
	switch {
	case workload.Strategy == costmodel.FSDP:
		keys = append(keys, entry{"fsdp_version", 2}, entry{"fsdp_config", mapping{
			{"auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
			{"reshard_after_forward", true},
			{"offload_params", workload.HostShards},
			{"activation_checkpointing", workload.Recompute == costmodel.RecomputeFull},
			{"cpu_ram_efficient_loading", workload.BuiltOn == "cpu"},
		}})
		keys.when(workload.ShardDegree > 0 && workload.ShardDegree < workload.World,
			entry{"dp_shard_size", workload.ShardDegree}, entry{"dp_replicate_size", workload.World / max(1, workload.ShardDegree)})
	case underZero(workload):
		config, err := inline(plan)
		return append(keys, entry{"deepspeed", config}), err
	}
	return keys, nil
}

// axolotlKernels are the keys of its plugin for Liger (integrations/liger/args.py) and
// of torchao's products (utils/schemas/fp8.py).
func axolotlKernels(workload *costmodel.Workload) (keys mapping) {
	keys.when(workload.Liger || workload.Loss == "fused", entry{"plugins", []string{"axolotl.integrations.liger.LigerPlugin"}})
	keys.when(workload.Liger, entry{"liger_rope", true}, entry{"liger_rms_norm", true}, entry{"liger_glu_activation", true})
	keys.when(workload.Liger || workload.Loss == "fused", entry{"liger_fused_linear_cross_entropy", true})
	keys.when(workload.Float8 != "", entry{"fp8", true})
	keys.when(workload.Float8 == "tensorwise-gathered", entry{"fp8_enable_fsdp_float8_all_gather", true})
	keys.when(workload.Float8 == "rowwise", entry{"fp8_config", mapping{{"recipe", "rowwise"}}})
	return keys
}
