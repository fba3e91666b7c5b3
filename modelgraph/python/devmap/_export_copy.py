"""A copy of a module without memory, to run instead of it."""

from __future__ import annotations

import copy

import torch


def copy_of(module: torch.nn.Module) -> torch.nn.Module:
    """The module with tensors on the meta device: same classes, same ties, and none of its hooks, which may talk to
    devices. Everything that floats asks for gradients, as in full training."""
    known: dict = {}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for tensor in tensors.values():
                if tensor is not None and id(tensor) not in known:
                    known[id(tensor)] = _meta(tensor)
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and id(value) not in known:
                known[id(value)] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    twin = copy.deepcopy(module, known)
    for part in twin.modules():
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            getattr(part, hooks).clear()
        old = part.__dict__.pop("_old_forward", None)  # accelerate/hooks.py, add_hook_to_module
        if old is not None:
            part.__dict__.pop("forward", None)
    return twin


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.dtype.is_floating_point)
    return empty
