"""The callback of transformers.Trainer."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from .held import Watching
from .settings import dtype_precision, optimizer_of


class DevmapCallback(Watching, TrainerCallback):  # type: ignore[misc] # transformers has no types here
    """Compares a plan with the memory that torch allocates under the Trainer: see devmap.callbacks."""

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.watch.begin(state.global_step)
        for line in unlike(args, self.watch.plan.workload, model):
            self.watch.log(f"devmap: note: {line}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.watch.after(state.global_step, ended=True)


def unlike(args: Any, workload: dict[str, Any], model: Any = None) -> list[str]:
    """Settings of the Trainer that differ from the plan."""
    if workload["mode"] != "train":
        return [f"the plan is of mode {workload['mode']!r}, and this trains"]
    planned = {
        "per_device_train_batch_size": workload["batch"] // workload["micro_batches"],
        "gradient_accumulation_steps": workload["micro_batches"],
        "gradient_checkpointing": workload["recompute"] != "none",
    }
    lines = [
        f"the plan is made for {name}={value}, and the Trainer has {getattr(args, name)}"
        for name, value in planned.items()
        if getattr(args, name, value) != value
    ]
    if not getattr(args, "deepspeed", None):  # whose own configuration has both
        lines += [*_other_optimizer(args, workload), *_other_precision(args, workload, model)]
    return lines


def _other_optimizer(args: Any, workload: dict[str, Any]) -> list[str]:
    name, optimizer = optimizer_of(args)
    planned = workload.get("optimizer", optimizer)
    if optimizer == planned:
        return []
    return [f"the plan is made for optimizer={planned!r}, and the Trainer has optim={name!r}"]


def _other_precision(args: Any, workload: dict[str, Any], model: Any) -> list[str]:
    """What differs of autocast and of the type of the weights."""
    planned = str(workload.get("precision", ""))
    lines = []
    for name, mixed in (("bf16", "bf16-mixed"), ("fp16", "16-mixed")):
        has = bool(getattr(args, name, False))
        plain = name == "bf16" and planned == "bf16-true"  # autocast changes nothing then
        if planned and has != (planned == mixed) and not plain:
            lines.append(f"the plan is made for precision={planned!r}, and the Trainer has {name}={has}")
    stored = _stored(model)
    expected = planned if planned.endswith("-true") else "32-true"
    if stored and planned and stored != expected and not workload.get("quantize") and not workload.get("lora_rank"):
        lines.append(f"the plan is made for precision={planned!r}, and the model's weights are {stored}")
    return lines


def _stored(model: Any) -> str:
    """The precision of the type that most weights of a model have."""
    sizes: dict[Any, int] = {}
    for parameter in model.parameters() if model is not None else ():
        if parameter.is_floating_point():
            sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
    try:
        return dtype_precision("dtype", max(sizes, key=sizes.__getitem__)) or "" if sizes else ""
    except ValueError:  # a type that no plan has
        return ""
