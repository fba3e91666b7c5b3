"""What a forward is run with."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ._errors import DevmapError
from ._export_trace import tensors_in

# Sizes that no model has by chance, so that rows of an activation tell whose tokens they are.
BATCH, SEQ, TARGET = 2, 37, 29


def prepare(inputs: Any) -> tuple[tuple, dict, dict[int, torch.Tensor]]:
    """Arguments and keyword arguments on the meta device, and the values of those that had some."""
    values: dict[int, torch.Tensor] = {}

    def bare(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            empty = torch.empty(value.shape, dtype=value.dtype, device="meta")
            if value.device.type != "meta" and not value.is_floating_point():
                values[id(empty)] = value
            return empty
        if isinstance(value, dict):
            return {key: bare(one) for key, one in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(bare(one) for one in value)
        return value

    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if hasattr(inputs, "items"):
        args, kwargs = (), {str(key): bare(value) for key, value in inputs.items()}
    elif isinstance(inputs, (tuple, list)):
        args, kwargs = tuple(bare(value) for value in inputs), {}
    else:
        raise DevmapError(
            f"export: inputs is a {type(inputs).__name__!r}: give a tuple of arguments or a dict of keyword arguments"
        )
    if not tensors_in((args, kwargs)):
        raise DevmapError("export: inputs holds no tensor")
    return args, kwargs, values


def usual(module: torch.nn.Module) -> dict | None:
    """Inputs of a Transformers model, from its config; None where the module does not say what it takes."""
    config = getattr(module, "config", None)
    if config is None or not hasattr(module, "main_input_name"):
        return None
    inner = module.get_base_model() if hasattr(module, "get_base_model") else module  # peft's forward takes anything
    takes = inspect.signature(inner.forward).parameters
    given: dict = {}
    if "pixel_values" == module.main_input_name and "input_ids" not in takes:
        given["pixel_values"] = _pixels(config)
    elif "input_features" in takes:
        bins, frames = getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", 1500)
        given["input_features"] = torch.empty((BATCH, bins, frames), device="meta")
    elif "input_values" in takes:
        given["input_values"] = torch.empty((BATCH, 16000), device="meta")
    elif "input_ids" in takes:
        given["input_ids"] = _ids(SEQ)
    if "decoder_input_ids" in takes and getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = _ids(TARGET)
    if "use_cache" in takes:
        given["use_cache"] = False
    dtype = next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.float32)
    given = {
        name: value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in given.items()
    }
    return given if tensors_in(given) else None


def _ids(length: int) -> torch.Tensor:
    return torch.zeros((BATCH, length), dtype=torch.int64)


def _pixels(config: Any) -> torch.Tensor:
    side = getattr(config, "image_size", None) or 224
    sides: list[int] = list(side) if isinstance(side, (tuple, list)) else [side, side]
    return torch.empty((BATCH, getattr(config, "num_channels", None) or 3, *sides), device="meta")
