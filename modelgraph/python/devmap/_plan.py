"""`devmap.plan`, and what it returns."""

from __future__ import annotations

import json
import os

from ._binary import run
from ._errors import DevmapError, UsageError
from ._model import Model
from ._record import Record, gib
from ._words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Union

    from typing_extensions import Unpack

    from ._flags import PlanFlags

    GPUs = Union[int, str, Sequence[Union[int, str]]]
    Path = Union[str, os.PathLike[str]]


class Predicted(Record):
    """What one GPU holds at its worst moment, bytes; the parts add up to `peak_allocated_bytes`."""

    __slots__ = ()
    if TYPE_CHECKING:
        params_bytes: int
        grads_bytes: int
        optimizer_state_bytes: int
        activations_bytes: int
        kv_cache_bytes: int
        workspace_bytes: int
        comm_buffers_bytes: int
        peak_allocated_bytes: int  # as torch.cuda.max_memory_allocated tells it
        overhead_bytes: int  # context, kernels, NCCL: outside the allocator's pool
        slack_bytes: list[int]  # the pool beyond the peak: least and most
        device_used_bytes: int  # as NVML tells it
        peak_at: str

    @property
    def peak_range_bytes(self) -> list[int]:
        """Between what the peak lies: its own value twice where it is known."""
        peak = self._fields["peak_allocated_bytes"]
        return list(self._fields.get("peak_range_bytes") or [peak, peak])


class Device(Record):
    """One GPU of a plan."""

    __slots__ = ()
    if TYPE_CHECKING:
        device: int
        capacity_bytes: int
        reserved_bytes: int
        headroom_bytes: int

    @property
    def predicted(self) -> Predicted:
        return Predicted(self._fields["predicted"])


class Stage(Record):
    """A run of units on one GPU, in order of execution; the seconds are of one micro-batch."""

    __slots__ = ()
    if TYPE_CHECKING:
        stage: int
        device: int | str
        units: list[str]
        forward_seconds: float | None
        backward_seconds: float | None
        send_seconds: float | None
        send_back_seconds: float | None
        update_seconds: float | None


class Emitted(str):
    """A file for an engine, as text. `usage` is how to make the engine read it, `notes` what limits its meaning."""

    usage: str
    notes: list[str]


class Plan:
    """A placement, what every GPU holds under it, and the proof. `document` is all of it (devmap.plan/v1)."""

    def __init__(self, text: str, table: str = "", model: Model | None = None) -> None:
        try:
            self.document: dict[str, Any] = json.loads(text)
        except ValueError as err:
            raise DevmapError(f"no plan: {err}") from err
        version = self.document.get("format_version") if isinstance(self.document, dict) else None
        if version != "devmap.plan/v1":
            raise DevmapError(f"no plan: its format_version is {version!r}, not 'devmap.plan/v1'")
        self._text, self._table, self._model = text, table, model

    @classmethod
    def read(cls, path: Path) -> Plan:
        """A plan that was saved, or that `devmap plan -o` wrote."""
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        try:
            return cls(text)
        except DevmapError as err:
            raise DevmapError(f"{os.fspath(path)}: {err}") from err

    @property
    def model(self) -> str:
        return str(self.document["model"]["name"])

    @property
    def workload(self) -> dict[str, Any]:
        """The flags as they were resolved."""
        return dict(self.document["workload"])

    @property
    def strategy(self) -> str:
        return str(self.document["workload"]["strategy"])

    @property
    def device_map(self) -> dict[str, int | str]:
        """Module path → GPU number, "cpu" or "disk": from_pretrained(…, device_map=plan.device_map)."""
        if self.strategy != "device-map":
            raise DevmapError(
                f"the plan for {self.model!r} has no device map: its strategy is {self.strategy}"
                + (" (stages lists the units of each GPU)" if self.document.get("stages") else "")
                + "; strategy='device-map' makes one"
            )
        return dict(self.document["device_map"])

    @property
    def devices(self) -> list[Device]:
        return [Device(fields) for fields in self.document["devices"]]

    @property
    def stages(self) -> list[Stage]:
        """The runs of units; none under ddp, zero, fsdp and hsdp, where every GPU runs the whole model."""
        return [Stage(fields) for fields in self.document.get("stages", [])]

    @property
    def warnings(self) -> list[str]:
        return list(self.document.get("warnings", []))

    @property
    def step_seconds(self) -> float | None:
        """Of one training step or one inference; None where nothing runs (mode "load")."""
        seconds = self.document.get("step_seconds")
        return None if seconds is None else float(seconds)

    @property
    def imbalance(self) -> float:
        """The largest peak over the mean of all GPUs'."""
        return float(self.document["imbalance"])

    @property
    def objective(self) -> dict[str, Any]:
        """What was minimised, its value, lower bound, gap and status."""
        return dict(self.document["objective"])

    def table(self) -> str:
        """What a person sees of it: every GPU with its parts, the certificate, the warnings."""
        if not self._table:
            source = self._model.path if self._model else self.document["model"]["source"]
            with self._file() as path:
                ran = run(["check", source, path], allowed=(0, 4))
            self._table = ran.stderr
        return self._table

    def save(self, path: Path) -> None:
        """Writes the plan as the command line reads it (devmap check, emit, watch, …), whole or not at all."""
        path = os.fspath(path)
        temporary = f"{path}.{os.getpid()}.new"
        try:
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                file.write(self._text)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    def emit(self, engine: str, path: Path | None = None, model: Path | None = None) -> Emitted:
        """The plan in the form that an engine reads ("accelerate", "ms-swift", "torch-check", …).

        It is written to path, if one is given. model says where the model is, if not where it was planned from; only
        what reads it again needs it.
        """
        words = [f"--for={engine}"]
        if path is not None:
            words.append(f"--output={os.fspath(path)}")
        if model is not None:
            words.append(f"--model={os.fspath(model)}")
        with self._file() as file:
            ran = run(["emit", file, *words])
        text = ran.stdout
        if path is not None:
            with open(path, encoding="utf-8", newline="") as written:
                text = written.read()
        emitted = Emitted(text)
        usage, *notes = ran.stderr.splitlines() or [""]
        emitted.usage, emitted.notes = usage.partition(": ")[2], [note.removeprefix("note: ") for note in notes]
        return emitted

    def _file(self) -> _PlanFile:
        return _PlanFile(self)

    def __repr__(self) -> str:
        workload, devices = self.document["workload"], self.document["devices"]
        peaks = [device["predicted"]["peak_allocated_bytes"] for device in devices]
        most = max(range(len(peaks)), key=peaks.__getitem__)
        parts = [
            f"{workload['mode']} of {workload['batch']} × {workload['seq']}" if workload["mode"] != "load" else "load",
            f"{self.strategy} on {len(devices)} GPU{'s' if len(devices) != 1 else ''}",
            f"largest peak {gib(peaks[most])} (GPU {devices[most]['device']})",
            f"imbalance {self.imbalance:.3f}",
            str(self.document["objective"].get("status", "")),
        ]
        count = len(self.warnings)
        if count:
            parts.append(f"{count} warning{'s' if count > 1 else ''}")
        return f"<devmap.Plan {self.model}: {', '.join(part for part in parts if part)}>"


class _PlanFile:
    """The plan in a file of its own, for as long as the program reads it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __enter__(self) -> str:
        import tempfile

        self.folder = tempfile.TemporaryDirectory(prefix="devmap-")
        path = os.path.join(self.folder.name, "plan.json")
        self.plan.save(path)
        return path

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()


def plan(
    model: object, gpus: GPUs | None = None, *, inputs: Any = None, no_split: Any = None, **flags: Unpack[PlanFlags]
) -> Plan:
    """Finds the placement whose fullest GPU is least full, with its proof.

    model is a path (a folder with config.json, a config.json, a model.json, a .safetensors file), a name, a config of
    Transformers, a torch.nn.Module (it is exported), or what devmap.export returned. gpus is how many, or the capacity
    of each: 4, "80GiB,24GiB", ["80GiB", "24GiB"]. All flags of `devmap help plan` are keywords: mode="train", batch=4,
    gpu="h200-141gb", pin={"lm_head": 3}, …. inputs and no_split are those of devmap.export, for a module: what one
    forward takes, without which only weights can be planned (Transformers models of text need none), and what is kept
    whole.

    Raises Infeasible with its remedies where nothing fits, UsageError where a flag is wrong.
    """
    read = Model(model, inputs, no_split, flags.get("mode") != "load")
    if flags.get("objective") == "front":
        raise UsageError("objective='front' has several maps: 'memory' and 'time' have one (devmap plan shows all)")
    ran = run(["plan", *words("plan", {"gpus": gpus, **flags}), "--", read.path])
    return Plan(ran.stdout, ran.stderr, read if read.folder else None)
