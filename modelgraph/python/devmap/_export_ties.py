"""Parameters that are one tensor under several names."""

from __future__ import annotations

import torch


def identity(tensor: torch.Tensor) -> object:
    """Equal for two tensors that are the same memory: one object, or two views of all of one storage.

    A storage has an identity on the meta device too, where it has no address (data_ptr is 0 for all).
    """
    try:
        storage = tensor.untyped_storage()._cdata
    except (AttributeError, NotImplementedError, RuntimeError):
        return id(tensor)  # a wrapper without a storage of its own (DTensor, torchao's)
    return (storage, tensor.storage_offset(), tensor.numel(), str(tensor.dtype))


def ties_of(module: torch.nn.Module) -> list:
    """Groups of full names, in order of registration; the first name of each owns the memory.

    A module that is registered twice ties all of its parameters.
    """
    names: dict = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(identity(parameter), []).append(name)
    return [group for group in names.values() if len(group) > 1]
