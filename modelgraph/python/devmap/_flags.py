"""Flags of devmap's commands, and the kind of each: what `devmap help COMMAND` lists.

Written by TestPythonFlags of cmd/devmap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import TypedDict

    class CheckFlags(TypedDict, total=False):
        attention: str | None
        batch: int | None
        built_on: str | None
        dp: int | str | None
        ds_config: str | None
        ema: bool | None
        gpu: str | None
        gpus: int | str | Sequence[int | str] | None
        gradient_as_bucket_view: bool | None
        image_size: int | None
        images: int | None
        lora_precision: str | None
        lora_rank: int | None
        lora_targets: Sequence[str] | str | None
        loss: str | None
        loss_only: bool | None
        mem_fraction: float | None
        micro_batches: int | None
        mode: str | None
        new_tokens: int | None
        optimizer: str | None
        precision: str | None
        preset: str | None
        quantize: str | None
        recompute: str | None
        reserve: int | str | Sequence[int | str] | None
        runtime: str | None
        schedule: str | None
        seq: int | None
        shard_degree: int | None
        strategy: str | None
        target_seq: int | None
        topology: str | PathLike[str] | None
        tp: int | str | None
        virtual_stages: int | None

    class EstimateFlags(TypedDict, total=False):
        attention: str | None
        batch: int | None
        built_on: str | None
        contiguous: bool | None
        dp: int | str | None
        ds_config: str | None
        ema: bool | None
        gpu: str | None
        gradient_as_bucket_view: bool | None
        image_size: int | None
        images: int | None
        lora_precision: str | None
        lora_rank: int | None
        lora_targets: Sequence[str] | str | None
        loss: str | None
        loss_only: bool | None
        mem_fraction: float | None
        micro_batches: int | None
        mode: str | None
        new_tokens: int | None
        objective: str | None
        offload: str | None
        optimizer: str | None
        pin: Mapping[str, int] | Sequence[str] | str | None
        precision: str | None
        preset: str | None
        quantize: str | None
        recompute: str | None
        reserve: int | str | Sequence[int | str] | None
        runtime: str | None
        schedule: str | None
        seq: int | None
        shard_degree: int | None
        strategy: str | None
        target_seq: int | None
        together: Sequence[Sequence[str] | str] | str | None
        topology: str | PathLike[str] | None
        tp: int | str | None
        virtual_stages: int | None

    class InspectFlags(TypedDict, total=False):
        attention: str | None
        batch: int | None
        built_on: str | None
        dp: int | str | None
        ema: bool | None
        gradient_as_bucket_view: bool | None
        image_size: int | None
        images: int | None
        lora_precision: str | None
        lora_rank: int | None
        lora_targets: Sequence[str] | str | None
        loss: str | None
        loss_only: bool | None
        mem_fraction: float | None
        micro_batches: int | None
        mode: str | None
        new_tokens: int | None
        optimizer: str | None
        precision: str | None
        preset: str | None
        quantize: str | None
        recompute: str | None
        runtime: str | None
        schedule: str | None
        seq: int | None
        shard_degree: int | None
        strategy: str | None
        target_seq: int | None
        tp: int | str | None
        virtual_stages: int | None

    class PlanFlags(TypedDict, total=False):
        attention: str | None
        batch: int | None
        built_on: str | None
        cfg_degree: int | None
        component: str | None
        contiguous: bool | None
        dp: int | str | None
        ds_config: str | None
        ema: bool | None
        explain: bool | None
        frames: int | None
        fully_shard_degree: int | None
        gpu: str | None
        gradient_as_bucket_view: bool | None
        height: int | None
        image_size: int | None
        images: int | None
        lora_precision: str | None
        lora_rank: int | None
        lora_targets: Sequence[str] | str | None
        loss: str | None
        loss_only: bool | None
        mem_fraction: float | None
        micro_batches: int | None
        mode: str | None
        new_tokens: int | None
        objective: str | None
        offload: str | None
        optimizer: str | None
        pin: Mapping[str, int] | Sequence[str] | str | None
        pipefusion: int | None
        precision: str | None
        preset: str | None
        quantize: str | None
        recompute: str | None
        reserve: int | str | Sequence[int | str] | None
        ring: int | None
        runtime: str | None
        schedule: str | None
        seq: int | None
        shard_degree: int | None
        steps: int | None
        strategy: str | None
        target_seq: int | None
        time_limit: float | str | None
        together: Sequence[Sequence[str] | str] | str | None
        topology: str | PathLike[str] | None
        tp: int | str | None
        ulysses: int | None
        vae_precision: str | None
        vae_slicing: bool | None
        vae_tiling: bool | None
        virtual_stages: int | None
        width: int | None


COMMANDS: dict[str, dict[str, str]] = {
    "check": {
        "attention": "string",
        "batch": "int64",
        "built_on": "string",
        "dp": "degree",
        "ds_config": "string",
        "ema": "bool",
        "gpu": "string",
        "gpus": "string",
        "gradient_as_bucket_view": "bool",
        "image_size": "int64",
        "images": "int64",
        "lora_precision": "string",
        "lora_rank": "int64",
        "lora_targets": "stringSlice",
        "loss": "string",
        "loss_only": "bool",
        "mem_fraction": "float64",
        "micro_batches": "int64",
        "mode": "string",
        "new_tokens": "int64",
        "optimizer": "string",
        "precision": "string",
        "preset": "string",
        "quantize": "string",
        "recompute": "string",
        "reserve": "stringArray",
        "runtime": "string",
        "schedule": "string",
        "seq": "int64",
        "shard_degree": "int64",
        "strategy": "string",
        "target_seq": "int64",
        "topology": "string",
        "tp": "degree",
        "virtual_stages": "int64",
    },
    "estimate": {
        "attention": "string",
        "batch": "int64",
        "built_on": "string",
        "contiguous": "bool",
        "dp": "degree",
        "ds_config": "string",
        "ema": "bool",
        "gpu": "string",
        "gpus": "string",
        "gradient_as_bucket_view": "bool",
        "image_size": "int64",
        "images": "int64",
        "lora_precision": "string",
        "lora_rank": "int64",
        "lora_targets": "stringSlice",
        "loss": "string",
        "loss_only": "bool",
        "mem_fraction": "float64",
        "micro_batches": "int64",
        "mode": "string",
        "new_tokens": "int64",
        "objective": "string",
        "offload": "string",
        "optimizer": "string",
        "pin": "stringArray",
        "precision": "string",
        "preset": "string",
        "quantize": "string",
        "recompute": "string",
        "reserve": "stringArray",
        "runtime": "string",
        "schedule": "string",
        "seq": "int64",
        "shard_degree": "int64",
        "strategy": "string",
        "target_seq": "int64",
        "together": "stringArray",
        "topology": "string",
        "tp": "degree",
        "virtual_stages": "int64",
    },
    "inspect": {
        "attention": "string",
        "batch": "int64",
        "built_on": "string",
        "dp": "degree",
        "ema": "bool",
        "gradient_as_bucket_view": "bool",
        "image_size": "int64",
        "images": "int64",
        "lora_precision": "string",
        "lora_rank": "int64",
        "lora_targets": "stringSlice",
        "loss": "string",
        "loss_only": "bool",
        "mem_fraction": "float64",
        "micro_batches": "int64",
        "mode": "string",
        "new_tokens": "int64",
        "optimizer": "string",
        "precision": "string",
        "preset": "string",
        "quantize": "string",
        "recompute": "string",
        "runtime": "string",
        "schedule": "string",
        "seq": "int64",
        "shard_degree": "int64",
        "strategy": "string",
        "target_seq": "int64",
        "tp": "degree",
        "virtual_stages": "int64",
    },
    "plan": {
        "attention": "string",
        "batch": "int64",
        "built_on": "string",
        "cfg_degree": "int64",
        "component": "string",
        "contiguous": "bool",
        "dp": "degree",
        "ds_config": "string",
        "ema": "bool",
        "explain": "bool",
        "frames": "int64",
        "fully_shard_degree": "int64",
        "gpu": "string",
        "gpus": "string",
        "gradient_as_bucket_view": "bool",
        "height": "int64",
        "image_size": "int64",
        "images": "int64",
        "lora_precision": "string",
        "lora_rank": "int64",
        "lora_targets": "stringSlice",
        "loss": "string",
        "loss_only": "bool",
        "mem_fraction": "float64",
        "micro_batches": "int64",
        "mode": "string",
        "new_tokens": "int64",
        "objective": "string",
        "offload": "string",
        "optimizer": "string",
        "pin": "stringArray",
        "pipefusion": "int64",
        "precision": "string",
        "preset": "string",
        "quantize": "string",
        "recompute": "string",
        "reserve": "stringArray",
        "ring": "int64",
        "runtime": "string",
        "schedule": "string",
        "seq": "int64",
        "shard_degree": "int64",
        "steps": "int64",
        "strategy": "string",
        "target_seq": "int64",
        "time_limit": "duration",
        "together": "stringArray",
        "topology": "string",
        "tp": "degree",
        "ulysses": "int64",
        "vae_precision": "string",
        "vae_slicing": "bool",
        "vae_tiling": "bool",
        "virtual_stages": "int64",
        "width": "int64",
    },
}
