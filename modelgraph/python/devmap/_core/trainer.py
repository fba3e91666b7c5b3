"""The callback of transformers.Trainer."""

from __future__ import annotations

from transformers import TrainerCallback

from .held import Watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DevmapCallback(Watching, TrainerCallback):  # type: ignore[misc] # transformers has no types here
    """Holds a plan against what torch held: see devmap.callbacks."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.begin(state.global_step)
        for line in unlike(args, self.watch.plan.workload):
            self.watch.log(f"devmap: note: {line}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step, ended=True)


def unlike(args: Any, workload: dict[str, Any]) -> list[str]:
    """Settings of the Trainer that differ from the plan."""
    if workload["mode"] != "train":
        return [f"the plan is of mode {workload['mode']!r}, and this trains"]
    planned = {
        "per_device_train_batch_size": workload["batch"] // workload["micro_batches"],
        "gradient_accumulation_steps": workload["micro_batches"],
        "gradient_checkpointing": workload["recompute"] != "none",
    }
    return [
        f"the plan is made for {name}={value}, and the Trainer has {getattr(args, name)}"
        for name, value in planned.items()
        if getattr(args, name, value) != value
    ]
