"""The callback of Lightning's Trainer, of whichever of its two packages the program uses."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib
import sys

from .errors import DevmapError
from .held import Watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def package() -> Any:
    """The one that is imported already, else the first that is there."""
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as err:
            if err.name not in (name, name.partition(".")[0]):
                raise
    raise DevmapError("LightningCallback is of Lightning, and neither lightning nor pytorch_lightning is installed")


class LightningCallback(Watching, package().Callback):  # type: ignore[misc] # one of two packages' class
    """Holds a plan against what torch held: see devmap.callbacks."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch.begin(trainer.global_step)
        for line in unlike(trainer, self.watch.plan.workload):
            self.watch.log(f"devmap: note: {line}")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.watch.after(trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.watch.after(trainer.global_step, ended=True)


def unlike(trainer: Any, workload: dict[str, Any]) -> list[str]:
    """Settings of the Trainer that differ from the plan."""
    if workload["mode"] != "train":
        return [f"the plan is of mode {workload['mode']!r}, and this trains"]
    planned = {"accumulate_grad_batches": workload["micro_batches"], "precision": workload["precision"]}
    return [
        f"the plan is made for {name}={value!r}, and the Trainer has {getattr(trainer, name)!r}"
        for name, value in planned.items()
        if getattr(trainer, name, value) != value
    ]
