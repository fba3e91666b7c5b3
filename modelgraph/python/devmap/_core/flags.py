"""Keywords of devmap's functions: the flags that `devmap help COMMAND` lists, with their types and values.

Written by TestPythonFlags of cmd/devmap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Optional, Union, get_args

from .settings import Settings

Attention = Literal["sdpa", "eager", "flash"]
BuiltOn = Literal["gpu", "cpu"]
Float8 = Literal["off", "tensorwise", "tensorwise-gathered", "rowwise"]
Kernels = Literal["torch", "package"]
LoraPrecision = Literal["fp32", "bf16"]
Loss = Literal["eager", "chunked", "fused", "tiled"]
Mode = Literal["infer", "train", "load", "serve"]
Optimizer = Literal[
    "adamw",
    "adamw-foreach",
    "adamw-8bit",
    "sgd",
    "sgd-momentum",
    "adafactor",
    "muon",
    "paged-adamw-8bit",
    "paged-adamw-32bit",
    "adamw-torch-8bit",
    "adamw-torch-4bit",
]
Packing = Literal["none", "wrapped", "packed", "padding-free"]
Precision = Literal["bf16-true", "bf16-mixed", "16-mixed", "16-true", "32-true"]
Preset = Literal[
    "auto",
    "accelerate-loop",
    "transformers",
    "transformers:fsdp1",
    "transformers:fsdp1-prefetch",
    "transformers:distributed-config",
    "trl-sft",
    "trl-dpo",
    "trl-grpo",
    "ms-swift",
    "ms-swift-megatron",
    "llamafactory",
    "axolotl",
    "axolotl:peft",
    "lightning",
    "lightning:blocks",
    "lightning:model-parallel",
    "torchtune",
    "torchtitan",
    "torchtitan:eager",
    "openpi:pi0_libero",
    "openpi:pi05_libero",
    "openpi:pi0_libero_low_mem_finetune",
    "openpi:pi0_aloha",
    "openpi:pi05_aloha",
    "openpi:pi0_aloha_towel",
    "openpi:pi0_aloha_tupperware",
    "openpi:pi0_droid",
    "openpi:pi05_droid",
    "openpi:pi0_aloha_pen_uncap",
    "openpi:pi05_aloha_pen_uncap",
    "openpi:pi05_full_droid_finetune",
    "openpi:pi05_droid_finetune",
    "openpi:pi0_aloha_sim",
    "openpi:pi0_fast_droid",
    "openpi:pi0_fast_libero",
    "openpi:pi0_fast_libero_low_mem_finetune",
    "openpi:pi0_fast_full_droid_finetune",
    "diffusers-dreambooth-lora",
]
Quantize = Literal["off", "nf4", "int8"]
Recompute = Literal["none", "full", "selective", "auto"]
Runtime = Literal[
    "accelerate",
    "deepspeed",
    "torch",
    "lightning",
    "jax",
    "torchtitan",
    "megatron",
    "llama.cpp",
    "vllm",
    "sglang",
    "devmap",
]
Schedule = Literal["1f1b", "gpipe", "interleaved", "zb-h1", "zbv", "v-half", "v-min", "auto"]
Strategy = Literal["device-map", "pipeline", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "auto"]
GPU = Literal[
    "h100-80gb",
    "h200-141gb",
    "h100-96gb",
    "a100-80gb",
    "a100-40gb",
    "b200-180gb",
    "l4-24gb",
    "l40s-48gb",
    "a10g-24gb",
    "rtx-3090",
    "rtx-4090",
    "v100-16gb",
    "v100-32gb",
    "t4-16gb",
    "rtx-2080-ti",
    "rtx-3060-12gb",
    "rtx-4060-ti-16gb",
    "rtx-4080",
    "rtx-5080",
    "rtx-5090",
    "rtx-a6000",
    "rtx-6000-ada",
    "rtx-pro-6000",
    "a40-48gb",
    "l20-48gb",
    "h20-96gb",
    "h800-80gb",
    "a800-80gb",
    "gh200-96gb",
    "b300-288gb",
    "mi250x-64gb",
    "mi300x-192gb",
    "mi325x-256gb",
]
OffloadActivations = Literal["none", "full", "auto"]
Objective = Literal["memory", "time", "latency"]
Offload = Literal["none", "cpu", "disk", "model", "sequential", "group"]
KvType = Literal[
    "auto",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "bfloat16",
    "bf16",
    "f16",
    "iq4_nl",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
]
Emit = Literal["slurm", "kubernetes"]


class Shared(Settings, total=False):
    """Keywords that all functions take."""

    attention: Optional[Attention]
    batch: Optional[int]
    built_on: Optional[BuiltOn]
    compile: Optional[bool]
    dp: Optional[Union[int, str]]
    ema: Optional[bool]
    eval_batch: Optional[int]
    eval_samples: Optional[int]
    float8: Optional[Float8]
    gradient_as_bucket_view: Optional[bool]
    image_size: Optional[int]
    images: Optional[Union[int, str]]
    kernels: Optional[Kernels]
    label_tokens: Optional[float]
    liger: Optional[bool]
    lora_dropout: Optional[bool]
    lora_precision: Optional[LoraPrecision]
    lora_rank: Optional[int]
    lora_targets: Optional[Union[Sequence[str], str]]
    loss: Optional[Loss]
    loss_only: Optional[bool]
    max_pixels: Optional[int]
    mem_fraction: Optional[float]
    micro_batches: Optional[int]
    mode: Optional[Mode]
    new_tokens: Optional[int]
    optimizer: Optional[Optimizer]
    optimizer_in_backward: Optional[bool]
    packing: Optional[Packing]
    precision: Optional[Precision]
    preset: Optional[Preset]
    quantize: Optional[Quantize]
    recompute: Optional[Recompute]
    runtime: Optional[Runtime]
    schedule: Optional[Schedule]
    seq: Optional[int]
    shard_degree: Optional[int]
    strategy: Optional[Strategy]
    target_seq: Optional[int]
    tp: Optional[Union[int, str]]
    transformers: Optional[str]
    virtual_stages: Optional[int]


class CheckKeywords(Shared, total=False):
    """Keywords of devmap.check but for gpus."""

    dim: Optional[Union[Sequence[str], str]]
    ds_config: Optional[Union[str, PathLike[str], Mapping[str, Any]]]
    gpu: Optional[Union[GPU, str]]
    lengths: Optional[Union[str, PathLike[str]]]
    nodes: Optional[int]
    offload_activations: Optional[OffloadActivations]
    reserve: Optional[Union[int, str, Sequence[Union[int, str]]]]
    topology: Optional[Union[str, PathLike[str]]]


class CheckFlags(CheckKeywords, total=False):
    """Keywords of devmap.check, to be kept in a dict: check(model, **flags)."""

    gpus: Optional[Union[int, str, Sequence[Union[int, str]], Mapping[int, Union[int, str]]]]


class EstimateKeywords(Shared, total=False):
    """Keywords of devmap.estimate but for gpus."""

    contiguous: Optional[bool]
    ds_config: Optional[Union[str, PathLike[str], Mapping[str, Any]]]
    gpu: Optional[Union[GPU, str]]
    lengths: Optional[Union[str, PathLike[str]]]
    nodes: Optional[int]
    objective: Optional[Objective]
    offload: Optional[Offload]
    offload_activations: Optional[OffloadActivations]
    pin: Optional[Union[Mapping[str, int], Sequence[str], str]]
    reserve: Optional[Union[int, str, Sequence[Union[int, str]]]]
    time_limit: Optional[Union[float, str]]
    together: Optional[Union[Sequence[Union[Sequence[str], str]], str]]
    topology: Optional[Union[str, PathLike[str]]]


class EstimateFlags(EstimateKeywords, total=False):
    """Keywords of devmap.estimate, to be kept in a dict: estimate(model, **flags)."""

    gpus: Optional[Union[int, str, Sequence[Union[int, str]], Mapping[int, Union[int, str]]]]


class InspectFlags(Shared, total=False):
    """Keywords of devmap.inspect."""

    dim: Optional[Union[Sequence[str], str]]
    kv_type: Optional[KvType]


class PlanKeywords(Shared, total=False):
    """Keywords of devmap.plan but for gpus."""

    cache_latents: Optional[bool]
    cfg_degree: Optional[int]
    component: Optional[str]
    context: Optional[int]
    contiguous: Optional[bool]
    cp: Optional[Union[int, str]]
    draft: Optional[str]
    ds_config: Optional[Union[str, PathLike[str], Mapping[str, Any]]]
    emit: Optional[Emit]
    ep: Optional[Union[int, str]]
    expert_capacity: Optional[float]
    explain: Optional[bool]
    force: Optional[bool]
    frames: Optional[int]
    fully_shard_degree: Optional[int]
    gpu: Optional[Union[GPU, str]]
    height: Optional[int]
    kv_type: Optional[KvType]
    lengths: Optional[Union[str, PathLike[str]]]
    mmproj: Optional[str]
    nodes: Optional[int]
    objective: Optional[Objective]
    offload: Optional[Offload]
    offload_activations: Optional[OffloadActivations]
    pin: Optional[Union[Mapping[str, int], Sequence[str], str]]
    pipefusion: Optional[int]
    pp: Optional[Union[int, str]]
    report: Optional[Union[str, PathLike[str]]]
    reserve: Optional[Union[int, str, Sequence[Union[int, str]]]]
    ring: Optional[int]
    sequence_parallel: Optional[bool]
    sequences: Optional[int]
    steps: Optional[int]
    time_limit: Optional[Union[float, str]]
    together: Optional[Union[Sequence[Union[Sequence[str], str]], str]]
    topology: Optional[Union[str, PathLike[str]]]
    ubatch: Optional[int]
    ulysses: Optional[int]
    uniform: Optional[bool]
    vae_precision: Optional[str]
    vae_slicing: Optional[bool]
    vae_tiling: Optional[bool]
    width: Optional[int]


class PlanFlags(PlanKeywords, total=False):
    """Keywords of devmap.plan, to be kept in a dict: plan(model, **flags)."""

    gpus: Optional[Union[int, str, Sequence[Union[int, str]], Mapping[int, Union[int, str]]]]


VALUES: dict[str, tuple[str, ...]] = {
    "attention": get_args(Attention),
    "built_on": get_args(BuiltOn),
    "emit": get_args(Emit),
    "float8": get_args(Float8),
    "gpu": get_args(GPU),
    "kernels": get_args(Kernels),
    "kv_type": get_args(KvType),
    "lora_precision": get_args(LoraPrecision),
    "loss": get_args(Loss),
    "mode": get_args(Mode),
    "objective": get_args(Objective),
    "offload": get_args(Offload),
    "offload_activations": get_args(OffloadActivations),
    "optimizer": get_args(Optimizer),
    "packing": get_args(Packing),
    "precision": get_args(Precision),
    "preset": get_args(Preset),
    "quantize": get_args(Quantize),
    "recompute": get_args(Recompute),
    "runtime": get_args(Runtime),
    "schedule": get_args(Schedule),
    "strategy": get_args(Strategy),
}

KINDS: dict[str, str] = {
    "attention": "string",
    "batch": "int64",
    "built_on": "string",
    "cache_latents": "bool",
    "cfg_degree": "int64",
    "compile": "bool",
    "component": "string",
    "context": "int64",
    "contiguous": "bool",
    "cp": "degree",
    "dim": "stringArray",
    "dp": "degree",
    "draft": "string",
    "ds_config": "string",
    "ema": "bool",
    "emit": "string",
    "ep": "degree",
    "eval_batch": "int64",
    "eval_samples": "int64",
    "expert_capacity": "float64",
    "explain": "bool",
    "float8": "string",
    "force": "bool",
    "frames": "int64",
    "fully_shard_degree": "int64",
    "gpu": "string",
    "gpus": "string",
    "gradient_as_bucket_view": "bool",
    "height": "int64",
    "image_size": "int64",
    "images": "int64",
    "kernels": "string",
    "kv_type": "string",
    "label_tokens": "float64",
    "lengths": "string",
    "liger": "bool",
    "lora_dropout": "bool",
    "lora_precision": "string",
    "lora_rank": "int64",
    "lora_targets": "stringSlice",
    "loss": "string",
    "loss_only": "bool",
    "max_pixels": "int64",
    "mem_fraction": "float64",
    "micro_batches": "int64",
    "mmproj": "string",
    "mode": "string",
    "new_tokens": "int64",
    "nodes": "int64",
    "objective": "string",
    "offload": "string",
    "offload_activations": "string",
    "optimizer": "string",
    "optimizer_in_backward": "bool",
    "packing": "string",
    "pin": "stringArray",
    "pipefusion": "int64",
    "pp": "degree",
    "precision": "string",
    "preset": "string",
    "quantize": "string",
    "recompute": "string",
    "report": "string",
    "reserve": "stringArray",
    "ring": "int64",
    "runtime": "string",
    "schedule": "string",
    "seq": "int64",
    "sequence_parallel": "bool",
    "sequences": "int64",
    "shard_degree": "int64",
    "steps": "int64",
    "strategy": "string",
    "target_seq": "int64",
    "time_limit": "duration",
    "together": "stringArray",
    "topology": "string",
    "tp": "degree",
    "transformers": "string",
    "ubatch": "int64",
    "ulysses": "int64",
    "uniform": "bool",
    "vae_precision": "string",
    "vae_slicing": "bool",
    "vae_tiling": "bool",
    "virtual_stages": "int64",
    "width": "int64",
}

_NAMES = {
    "check": (
        "attention batch built_on compile dim dp ds_config ema eval_batch eval_samples float8 gpu gpus "
        "gradient_as_bucket_view image_size images kernels label_tokens lengths liger lora_dropout "
        "lora_precision lora_rank lora_targets loss loss_only max_pixels mem_fraction micro_batches mode "
        "new_tokens nodes offload_activations optimizer optimizer_in_backward packing precision preset "
        "quantize recompute reserve runtime schedule seq shard_degree strategy target_seq topology tp "
        "transformers virtual_stages"
    ),
    "estimate": (
        "attention batch built_on compile contiguous dp ds_config ema eval_batch eval_samples float8 gpu gpus "
        "gradient_as_bucket_view image_size images kernels label_tokens lengths liger lora_dropout "
        "lora_precision lora_rank lora_targets loss loss_only max_pixels mem_fraction micro_batches mode "
        "new_tokens nodes objective offload offload_activations optimizer optimizer_in_backward packing pin "
        "precision preset quantize recompute reserve runtime schedule seq shard_degree strategy target_seq "
        "time_limit together topology tp transformers virtual_stages"
    ),
    "inspect": (
        "attention batch built_on compile dim dp ema eval_batch eval_samples float8 gradient_as_bucket_view "
        "image_size images kernels kv_type label_tokens liger lora_dropout lora_precision lora_rank "
        "lora_targets loss loss_only max_pixels mem_fraction micro_batches mode new_tokens optimizer "
        "optimizer_in_backward packing precision preset quantize recompute runtime schedule seq shard_degree "
        "strategy target_seq tp transformers virtual_stages"
    ),
    "plan": (
        "attention batch built_on cache_latents cfg_degree compile component context contiguous cp dp draft "
        "ds_config ema emit ep eval_batch eval_samples expert_capacity explain float8 force frames "
        "fully_shard_degree gpu gpus gradient_as_bucket_view height image_size images kernels kv_type "
        "label_tokens lengths liger lora_dropout lora_precision lora_rank lora_targets loss loss_only "
        "max_pixels mem_fraction micro_batches mmproj mode new_tokens nodes objective offload "
        "offload_activations optimizer optimizer_in_backward packing pin pipefusion pp precision preset "
        "quantize recompute report reserve ring runtime schedule seq sequence_parallel sequences shard_degree "
        "steps strategy target_seq time_limit together topology tp transformers ubatch ulysses uniform "
        "vae_precision vae_slicing vae_tiling virtual_stages width"
    ),
}
COMMANDS = {command: {name: KINDS[name] for name in names.split()} for command, names in _NAMES.items()}

# Names in other programs.
OTHERS: dict[str, str] = {
    "activation_checkpointing": "recompute",
    "activation_offloading": "offload_activations",
    "attn_impl": "attention",
    "attn_implementation": "attention",
    "batch_size": "batch",
    "batchsize": "batch",
    "bf16": "precision",
    "bits": "quantize",
    "bs": "batch",
    "cache_type_k": "kv_type",
    "chunks": "micro_batches",
    "context_length": "context",
    "context_parallel": "cp",
    "context_parallel_degree": "cp",
    "context_parallel_size": "cp",
    "cpu_offloading_activations": "offload_activations",
    "ctk": "kv_type",
    "ctx_size": "context",
    "cutoff_len": "seq",
    "data_parallel": "dp",
    "data_parallel_degree": "dp",
    "ddp": "strategy",
    "deepspeed": "ds_config",
    "deepspeed_config": "ds_config",
    "device_map": "strategy",
    "devices": "gpus",
    "dp_degree": "dp",
    "dtype": "precision",
    "enable_activation_offloading": "offload_activations",
    "enable_expert_parallel": "ep",
    "expert_model_parallel_size": "ep",
    "expert_parallel": "ep",
    "expert_parallel_degree": "ep",
    "flash_attention": "attention",
    "flash_attn": "attention",
    "fp16": "precision",
    "fp8": "float8",
    "fsdp": "strategy",
    "fsdp_devices": "shard_degree",
    "gpu_count": "gpus",
    "gpu_memory": "gpus",
    "gpu_memory_utilization": "mem_fraction",
    "gradient_accumulation_steps": "micro_batches",
    "gradient_checkpointing": "recompute",
    "hosts": "nodes",
    "html": "report",
    "image_max_pixels": "max_pixels",
    "iterations": "steps",
    "kv_cache_dtype": "kv_type",
    "load_in_4bit": "quantize",
    "load_in_8bit": "quantize",
    "lora": "lora_rank",
    "lora_r": "lora_rank",
    "max_length": "seq",
    "max_memory": "gpus",
    "max_new_tokens": "new_tokens",
    "max_num_seqs": "sequences",
    "max_seq_len": "seq",
    "max_seq_length": "seq",
    "max_steps": "steps",
    "md": "draft",
    "mem_fraction_static": "mem_fraction",
    "memory": "gpus",
    "microbatches": "micro_batches",
    "mm": "mmproj",
    "model_draft": "draft",
    "n_cpu_moe": "host_experts",
    "n_ctx": "context",
    "n_gpu_layers": "gpu_layers",
    "n_gpus": "gpus",
    "n_parallel": "sequences",
    "ncmoe": "host_experts",
    "neat_packing": "packing",
    "ngl": "gpu_layers",
    "ngpus": "gpus",
    "nnodes": "nodes",
    "np": "sequences",
    "nproc_per_node": "gpus",
    "num_ctx": "context",
    "num_gpu": "gpu_layers",
    "num_gpus": "gpus",
    "num_machines": "nodes",
    "num_nodes": "nodes",
    "num_steps": "steps",
    "optim": "optimizer",
    "optimizer_in_bwd": "optimizer_in_backward",
    "overwrite": "force",
    "parallel": "sequences",
    "per_device_eval_batch_size": "eval_batch",
    "per_device_train_batch_size": "batch",
    "pipeline_model_parallel_size": "pp",
    "pipeline_parallel": "pp",
    "pipeline_parallel_degree": "pp",
    "qlora": "lora_rank",
    "quantization": "quantize",
    "quantization_bit": "quantize",
    "rank": "lora_rank",
    "sample_packing": "packing",
    "seq_len": "seq",
    "seq_length": "seq",
    "sequence_length": "seq",
    "sequence_parallel_enabled": "sequence_parallel",
    "sharding": "strategy",
    "spec_draft_model": "draft",
    "tensor_model_parallel_size": "tp",
    "tensor_parallel": "tp",
    "tensor_parallel_degree": "tp",
    "tensor_parallel_size": "tp",
    "timeout": "time_limit",
    "torch_compile": "compile",
    "torch_dtype": "precision",
    "tp_degree": "tp",
    "transformers_version": "transformers",
    "ts": "tensor_split",
    "ub": "ubatch",
    "ubatch_size": "ubatch",
    "use_liger_kernel": "liger",
    "vllm_version": "engine_version",
    "vram": "gpus",
    "xla_python_client_mem_fraction": "mem_fraction",
    "zero": "strategy",
    "zero_stage": "strategy",
}
