package emit

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// lightningTrainer is the section of the Trainer in a configuration of LightningCLI
// (lightning 2.6, pytorch/trainer/trainer.py).
func lightningTrainer(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	hosts, each := hostsOf(plan)
	var strategy any = "ddp"
	precision := workload.Precision
	switch {
	case workload.Strategy == costmodel.DDP && workload.GradientViews:
		strategy = mapping{{"class_path", "lightning.pytorch.strategies.DDPStrategy"}, {"init_args", mapping{{"gradient_as_bucket_view", true}}}}
	case workload.Preset == "lightning:model-parallel":
		strategy = mapping{{"class_path", "lightning.pytorch.strategies.ModelParallelStrategy"}, {"init_args", mapping{
			{"data_parallel_size", workload.World}, {"tensor_parallel_size", 1},
		}}}
		if precision == costmodel.BF16Mixed { // MixedPrecisionPolicy in configure_model is in the place of autocast
			precision = costmodel.FP32True
		}
	case workload.Strategy == costmodel.FSDP:
		strategy = mapping{{"class_path", "lightning.pytorch.strategies.FSDPStrategy"}, {"init_args", mapping{{"cpu_offload", workload.HostShards}}}}
	}
	return mapping{{"trainer", mapping{
		{"accelerator", "gpu"},
		{"num_nodes", hosts},
		{"devices", each},
		{"strategy", strategy},
		{"precision", string(precision)},
		{"accumulate_grad_batches", max(1, workload.MicroBatches)},
	}}}, nil
}

// accelerateConfig is what accelerate launch reads (accelerate 1.15,
// commands/config/config_args.py).
func accelerateConfig(plan *devicemap.Plan) (mapping, error) {
	workload := &plan.Workload
	hosts, _ := hostsOf(plan)
	kind, mixed := "MULTI_GPU", "no"
	if workload.Strategy != costmodel.DDP {
		kind = "FSDP"
	}
	switch {
	case workload.Float8 != "":
		mixed = "fp8"
	case workload.Precision == costmodel.BF16Mixed:
		mixed = "bf16"
	case workload.Precision == costmodel.FP16Mixed:
		mixed = "fp16"
	}
	keys := mapping{
		{"compute_environment", "LOCAL_MACHINE"},
		{"distributed_type", kind},
		{"mixed_precision", mixed},
		{"num_machines", hosts},
		{"machine_rank", 0},
		{"num_processes", workload.World},
		{"main_training_function", "main"},
	}
	keys.when(workload.Float8 != "", entry{"fp8_config", mapping{ // utils/dataclasses.py, AORecipeKwargs
		{"backend", "AO"},
		{"enable_fsdp_float8_all_gather", workload.Float8 == "tensorwise-gathered"},
		{"pad_inner_dim", true},
	}})
	if kind == "FSDP" {
		keys = append(keys, entry{"fsdp_config", fsdpConfig(workload)})
	}
	if groups := workload.ShardDegree > 0 && workload.ShardDegree < workload.World; workload.Strategy == costmodel.HSDP || groups && kind == "FSDP" && !strings.HasPrefix(workload.Preset, "transformers:fsdp1") {
		keys = append(keys, entry{"parallelism_config", mapping{
			{"parallelism_config_dp_replicate_size", workload.World / max(1, workload.ShardDegree)},
			{"parallelism_config_dp_shard_size", workload.ShardDegree},
			{"parallelism_config_tp_size", 1},
			{"parallelism_config_cp_size", 1},
		}})
	}
	return keys, nil
}

// fsdpConfig is the section of FSDP of Accelerate.
func fsdpConfig(workload *costmodel.Workload) mapping {
	keys := mapping{
		{"fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
		{"fsdp_activation_checkpointing", workload.Recompute == costmodel.RecomputeFull},
		{"fsdp_cpu_ram_efficient_loading", workload.BuiltOn == "cpu"},
		{"fsdp_offload_params", workload.HostShards},
	}
	if first, version1 := strings.CutPrefix(workload.Preset, "transformers:fsdp1"); version1 {
		keys = append(keys, entry{"fsdp_version", 1}, entry{"fsdp_sharding_strategy", "FULL_SHARD"}, entry{"fsdp_use_orig_params", true})
		keys.when(first == "-prefetch", entry{"fsdp_backward_prefetch", "BACKWARD_PRE"})
		return keys
	}
	return append(keys, entry{"fsdp_version", 2}, entry{"fsdp_reshard_after_forward", true})
}
