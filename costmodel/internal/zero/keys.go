package zero

// topKeys are the keys of a configuration (runtime/constants.py, and parts with their own sections).
var topKeys = []string{
	"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation",
	"optimizer", "scheduler", "fp16", "bf16", "amp", "torch_autocast", "data_types", "gradient_clipping", "zero_optimization",
	"zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "communication_data_type", "seq_parallel_communication_data_type",
	"prescale_gradients", "gradient_predivide_factor", "gradient_allreduce_op", "sparse_gradients", "disable_allgather",
	"steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state", "dataloader_drop_last", "disable_python_gc", "log_level",
	"activation_checkpointing", "aio", "flops_profiler", "autotuning", "tensorboard", "wandb", "csv_monitor", "comet", "comms_logger",
	"compression_training", "data_efficiency", "curriculum_learning", "checkpoint", "elasticity", "hybrid_engine", "pipeline",
	"tensor_parallel", "expert_parallel", "sequence_parallel_size", "sparse_attention", "progressive_layer_drop", "eigenvalue", "timers",
	"use_data_before_expert_parallelism", "compile", "nebula", "weight_quantization", "graph_harvesting", "use_node_local_storage",
	"load_universal_checkpoint", "checkpoint_writer", "datastates_ckpt", "check_overflow", "zero_compute_grad_norm",
}

// zeroKeys are the keys of zero_optimization (zero/config.py).
var zeroKeys = []string{
	"stage", "contiguous_gradients", "reduce_scatter", "reduce_bucket_size", "use_multi_rank_bucket_allreduce", "allgather_partitions",
	"allgather_bucket_size", "overlap_comm", "compute_grad_norm", "load_from_fp32_weights", "elastic_checkpoint", "offload_param", "offload_optimizer",
	"zenflow", "sub_group_size", "cpu_offload_param", "cpu_offload_use_pin_memory", "cpu_offload", "stage3_prefetch_bucket_size",
	"stage3_param_persistence_threshold", "stage3_model_persistence_threshold", "stage3_max_live_parameters", "stage3_max_reuse_distance",
	"stage3_gather_16bit_weights_on_model_save", "stage3_module_granularity_threshold", "stage3_use_all_reduce_for_fetch_params",
	"stage3_allgather_sequential", "stage3_gather_fp16_weights_on_model_save", "ignore_unused_parameters", "legacy_stage1", "round_robin_gradients",
	"parameter_alignment", "zero_hpz_partition_size", "zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients",
	"memory_efficient_linear", "pipeline_loading_checkpoint", "override_module_apply", "log_trace_cache_warnings", "enable_sanity_checks",
	"save_muon_momentum_buffer_in_memory", "leaf_module",
}

// offloadKeys are the keys of offload_optimizer and offload_param (zero/offload_config.py).
var offloadKeys = []string{
	"device", "nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory", "pipeline_read", "pipeline_write", "fast_init", "ratio",
	"super_offload", "cpuadam_cores_perc", "pipeline",
}

// refused are sections with an effect on GPU memory; enabled is the default of their "enabled".
var refused = []struct {
	name, why string
	enabled   bool
}{
	{"amp", "bf16 and fp16 are", true},
	{"torch_autocast", "bf16 and fp16 are", false},
	{"compression_training", "leave it out", true},
	{"hybrid_engine", "training alone is", false},
	{"progressive_layer_drop", "leave it out", false},
	{"sparse_attention", "leave it out", true},
	{"tensor_parallel", "one GPU a replica is", true},
	{"expert_parallel", "one GPU a replica is", true},
	{"elasticity", "a fixed number of GPUs is", false},
}
