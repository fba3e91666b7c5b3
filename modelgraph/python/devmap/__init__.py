"""devmap plans how a large neural network is spread over GPUs, and predicts the peak memory of each GPU.

>>> import devmap
>>> plan = devmap.plan("gpt2", gpus=2, gpu="rtx-4090", mode="train", batch=4)
>>> plan.verdict, [round(peak / 2**30, 2) for peak in plan.peaks]
('fits', [4.01, 3.85])

Load a model with it: AutoModelForCausalLM.from_pretrained("gpt2", device_map=plan.device_map).

The package needs no GPU, no network and no other package: it runs the program devmap, which its wheel carries. The
classes of answers, such as Device, Check and Remedy, and the callbacks of trainers (devmap.callbacks) have their own
help. DEVMAP_BINARY names another program.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all of this package
if TYPE_CHECKING:
    from . import callbacks as callbacks
    from ._core.answers import (
        Check as Check,
        Estimate as Estimate,
        Fault as Fault,
        Infeasible as Infeasible,
        Inspection as Inspection,
        Remedy as Remedy,
        Report as Report,
        Row as Row,
        Unit as Unit,
    )
    from ._core.commands import (
        aplan as aplan,
        check as check,
        estimate as estimate,
        export as export,
        inspect as inspect,
        measure as measure,
        plan as plan,
        verify as verify,
        watch as watch,
    )
    from ._core.errors import DevmapError as DevmapError, UsageError as UsageError
    from ._core.flags import (
        CheckFlags as CheckFlags,
        EstimateFlags as EstimateFlags,
        InspectFlags as InspectFlags,
        PlanFlags as PlanFlags,
    )
    from ._core.measured import Alive as Alive, Measured as Measured, MeasuredDevice as MeasuredDevice
    from ._core.plan import (
        Device as Device,
        Emitted as Emitted,
        Plan as Plan,
        Predicted as Predicted,
        Stage as Stage,
    )
    from ._core.verified import Verified as Verified

    __version__: str

__all__ = ["Plan", "aplan", "check", "estimate", "export", "inspect", "measure", "plan", "verify", "watch"]

_WHERE = {
    "answers": "Check Estimate Fault Infeasible Inspection Remedy Report Row Unit",
    "commands": "aplan check estimate export inspect measure plan verify watch",
    "errors": "DevmapError UsageError",
    "flags": "CheckFlags EstimateFlags InspectFlags PlanFlags",
    "measured": "Alive Measured MeasuredDevice",
    "plan": "Device Emitted Plan Predicted Stage",
    "verified": "Verified",
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
            if name in names.split():
                import importlib

                found = getattr(importlib.import_module("._core." + module, __name__), name)
                break
        else:
            raise AttributeError(f"module 'devmap' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(["__version__", "callbacks", *(name for names in _WHERE.values() for name in names.split())])
