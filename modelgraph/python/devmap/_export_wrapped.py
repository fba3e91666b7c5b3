"""Modules around the module that is meant: what they wrap is described, under its own names."""

from __future__ import annotations

import torch

from ._errors import DevmapError

# Class name of a wrapper and the attribute that holds what it wraps.
_WRAPPERS = {
    "DistributedDataParallel": "module",  # torch/nn/parallel/distributed.py
    "DataParallel": "module",  # torch/nn/parallel/data_parallel.py
    "FullyShardedDataParallel": "module",  # torch/distributed/fsdp/fully_sharded_data_parallel.py
    "DeepSpeedEngine": "module",  # deepspeed/runtime/engine.py
    "OptimizedModule": "_orig_mod",  # torch/_dynamo/eval_frame.py, what torch.compile returns
}


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
    flat = [name for name, _ in module.named_parameters() if name.rpartition(".")[2] == "_flat_param"]
    if flat:
        raise DevmapError(
            f"export: {flat[0]!r} is FullyShardedDataParallel's: it has no tensors of the model's own; export the "
            "module before it is wrapped"
        )
    return module, said
