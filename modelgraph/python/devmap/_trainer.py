"""The callback of transformers.Trainer."""

from __future__ import annotations

from transformers import TrainerCallback

from ._held import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._held import Held
    from ._plan import Path, Plan


class DevmapCallback(TrainerCallback):  # type: ignore[misc] # transformers has no types here
    """Holds a plan against what torch held: see devmap.callbacks."""

    def __init__(
        self, plan: Plan | Path, steps: int = 3, strict: bool = False, log: Callable[[str], object] | None = None
    ) -> None:
        self.watch = Watch(plan, steps, strict, log)

    @property
    def report(self) -> list[Held]:
        return self.watch.report

    @property
    def verdict(self) -> str:
        return self.watch.verdict

    @property
    def reason(self) -> str:
        return self.watch.reason

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.begin(state.global_step)
        for line in unlike(args, self.watch.plan.workload):
            self.watch.log(f"devmap: note: {line}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step, ended=True)


def unlike(args: Any, workload: dict[str, Any]) -> list[str]:
    """Where what the Trainer is told is not what was planned."""
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
