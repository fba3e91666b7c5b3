"""Callbacks of trainers that compare a plan with the memory that torch allocates.

    from devmap.callbacks import DevmapCallback       # for transformers.Trainer
    trainer = Trainer(model=model, args=args, train_dataset=rows, callbacks=[DevmapCallback(plan)])

    from devmap.callbacks import LightningCallback    # for lightning.pytorch.Trainer and pytorch_lightning's
    trainer = Trainer(max_steps=10, callbacks=[LightningCallback(plan)])

Both take a plan or its file. steps is the number of steps after which they judge (3, and again at the end). strict=True
ends the training with DevmapError (status 4) if the plan does not hold. log takes each line; without it lines go to
stderr. Afterwards callback.verdict is "pass", "fail" or "inconclusive", and callback.report has a Held for each GPU of
this process.

A device map belongs to one process. Under ddp, zero, fsdp and hsdp each process compares its own GPU with its rank's.
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
    import importlib.util

    if name == "DevmapCallback" and importlib.util.find_spec("transformers") is None:
        raise ImportError("devmap.callbacks.DevmapCallback needs transformers: pip install transformers")
    found = globals()[name] = getattr(importlib.import_module("._core." + _WHERE[name], __package__), name)
    return found
