"""Callbacks that hold a plan against what torch held after the first steps.

    from devmap.callbacks import DevmapCallback       # of transformers.Trainer
    trainer = Trainer(…, callbacks=[DevmapCallback(plan)])

    from devmap.callbacks import LightningCallback    # of lightning.pytorch.Trainer, pytorch_lightning's
    trainer = Trainer(…, callbacks=[LightningCallback(plan)])

Both take the plan or its file, `steps` after which they judge (3; and once more at the end), `strict=True` to end
training with an error (exit status 4) where the plan does not hold, and `log`, what is called with each line (printed
to stderr). After that `callback.verdict` is "pass", "fail" or "inconclusive", and `callback.report` has a Held for each
GPU of this process. Device maps are one process's; under ddp, zero, fsdp and hsdp each process holds its own GPU to the
plan's of its rank.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core.held import Held
    from ._core.lightning import LightningCallback
    from ._core.trainer import DevmapCallback

__all__ = ["DevmapCallback", "Held", "LightningCallback"]

_WHERE = {"DevmapCallback": "trainer", "Held": "held", "LightningCallback": "lightning"}


def __getattr__(name: str) -> object:
    """Imports transformers or lightning when a callback of theirs is asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module 'devmap.callbacks' has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module("._core." + _WHERE[name], __package__), name)
    return found
