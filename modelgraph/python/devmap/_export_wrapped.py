"""Modules around the module that is meant: what they wrap is described, under its own names."""

from __future__ import annotations

import torch

from ._errors import DevmapError

# Class name of a wrapper and the attribute that holds what it wraps.
_WRAPPERS = {
    "DistributedDataParallel": "module",  # torch/nn/parallel/distributed.py
    "DataParallel": "module",  # torch/nn/parallel/data_parallel.py
    "DeepSpeedEngine": "module",  # deepspeed/runtime/engine.py
    "OptimizedModule": "_orig_mod",  # torch/_dynamo/eval_frame.py, what torch.compile returns
}

# torch/distributed/fsdp/_flat_param.py: with use_orig_params too, a parameter is this process's part of it, in one
# dimension or empty.
_FLAT = "FullyShardedDataParallel"


def unwrap(module: torch.nn.Module) -> tuple:
    """The module inside, and what is to be said of the wrappers."""
    said = []
    while type(module).__name__ in _WRAPPERS:
        wrapper = type(module).__name__
        inner = getattr(module, _WRAPPERS[wrapper], None)
        if not isinstance(inner, torch.nn.Module):
            break
        said.append(
            f"the module was wrapped in {wrapper}: what it wraps is described, under the names that it has there"
        )
        module = inner
    flat = [path for path, part in module.named_modules() if type(part).__name__ == _FLAT]
    if flat:
        raise DevmapError(
            f"export: {flat[0] or 'the module'!r} is a {_FLAT}: its parameters are pieces of one flat tensor, under "
            "names or not, and not those of the model; export the module before it is wrapped"
        )
    _whole(module)
    return module, said


def _whole(module: torch.nn.Module) -> None:
    """Refuses parameters that ZeRO-3 shards (it keeps this process's part), and an empty tensor in their place
    (deepspeed/runtime/zero/partition_parameters.py: ds_shape is the whole's)."""
    for name, one in module.named_parameters():
        if hasattr(one, "ds_shape") and tuple(one.ds_shape) != tuple(one.shape):
            raise DevmapError(
                f"export: {name!r} is partitioned by ZeRO-3, its tensor here has the shape {list(one.shape)}; export "
                "the module as it is built outside of deepspeed.zero.Init"
            )
