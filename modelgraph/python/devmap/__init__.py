"""devmap plans how a large neural network is spread over GPUs, and proves the plan.

    import devmap

    plan = devmap.plan("Qwen/Qwen2.5-3B", gpus=4, gpu="h200-141gb", mode="train", batch=4)
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-3B", device_map=plan.device_map)

The planning is done by the program `devmap` that this package carries: it needs no GPU and no network, and the command
line is the same. Nothing but the standard library is imported here, and that when it is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all of this package
if TYPE_CHECKING:
    from ._commands import Check, Estimate, Inspection, check, estimate, inspect
    from ._errors import DevmapError, Infeasible, Remedy, UsageError
    from ._export import export
    from ._plan import Device, Plan, Predicted, Stage, plan

    __version__: str

__all__ = [
    "Check", "Device", "DevmapError", "Estimate", "Infeasible", "Inspection", "Plan", "Predicted", "Remedy", "Stage",
    "UsageError", "check", "estimate", "export", "inspect", "plan",
]  # fmt: skip

_WHERE = {
    "_commands": ("Check", "Estimate", "Inspection", "check", "estimate", "inspect"),
    "_errors": ("DevmapError", "Infeasible", "Remedy", "UsageError"),
    "_export": ("export",),
    "_plan": ("Device", "Plan", "Predicted", "Stage", "plan"),
}


def __getattr__(name: str) -> object:
    """Imports a name when it is first used."""
    if name == "__version__":
        from importlib import metadata

        try:
            found: object = metadata.version("devmap-gpu")
        except metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
            found = "0+unknown"
    elif name == "callbacks":
        import importlib

        return importlib.import_module(".callbacks", __name__)
    else:
        for module, names in _WHERE.items():
            if name in names:
                import importlib

                found = getattr(importlib.import_module("." + module, __name__), name)
                break
        else:
            raise AttributeError(f"module 'devmap' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "callbacks"])
