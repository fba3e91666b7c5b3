"""What is to be said of a module: what one forward did not show, and what model.json has no field for."""

from __future__ import annotations

import torch

from ._export_trace import Trace

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def of_module(module: torch.nn.Module) -> list[str]:
    """What can be seen without running it."""
    said: list[str] = []
    frozen = [name for name, one in module.named_parameters() if not one.requires_grad and one.is_floating_point()]
    total = sum(1 for _ in module.parameters())
    if frozen:
        said.append(
            f"{len(frozen)} of {total} parameters take no gradient ({_first(frozen)}): a plan for training counts "
            "gradients and optimizer states of all, an upper bound (lora_rank plans adapters on the base model; "
            "what a model.json calls frozen counts under --runtime jax alone)"
        )
    packed = [name for name, one in module.named_parameters() if one.dtype not in _FLOATS]
    if packed:
        said.append(
            f"{len(packed)} parameters are stored quantised ({_first(packed)}): their bytes are counted as stored, "
            "what their layers unpack is not"
        )
    hooked = [
        path or "the module" for path, part in module.named_modules() if part._forward_hooks or part._forward_pre_hooks
    ]
    if hooked:
        said.append(f"hooks of {_names(hooked)} were not run: what they keep or change was not seen")
    return said


def of_trace(trace: Trace, twin: torch.nn.Module, before: list[str]) -> list[str]:
    """What the forward did, and did not."""
    said: list[str] = []
    for path, why in trace.failed.items():
        said.append(
            f"{path}: its forward could not be followed ({why}): it is known by its modules alone, its result taken to "
            "be like what goes in"
        )
    for path, line in trace.guessed.items():
        if not line.startswith("masking_utils.py"):
            said.append(
                f"{path or 'the module'}: {line} asks whether values that depend on the data are so: the way that "
                "holds was followed, the other not seen"
            )
    read = {number for step in trace.steps for number in step.inputs}
    called = {call.path for call in trace.calls}
    unread = []
    for number, names in trace.parameters.items():
        holder = names[0].rpartition(".")[0]
        name = names[0] if holder in called else holder
        if number not in read and name not in unread:
            unread.append(name)
    if unread:
        said.append(f"{_names(unread)}: not called in this forward: known by weights alone")
    made = [name for name, _ in twin.named_parameters() if name not in set(before)]
    if made:
        said.append(f"{_names(made)}: made in the forward: a device map made before has no place for it")
    return said


def _first(names: list[str]) -> str:
    return names[0] + (", …" if len(names) > 1 else "")


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
