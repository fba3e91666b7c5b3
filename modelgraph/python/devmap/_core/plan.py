"""A plan as an object, and the tables that answers are printed as."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

from .binary import run
from .errors import DevmapError, spare
from .model import Model
from .words import keywords

GPUs = Union[int, str, Sequence[Union[int, str]], Mapping[int, Union[int, str]]]
Path = Union[str, "os.PathLike[str]"]
Verdict = Literal["fits", "tight", "no"]


def gib(size: float) -> str:
    """Bytes as people read them."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


class Record:
    """An object of a JSON document: its fields are attributes, read-only.

    A subclass declares the fields that type checkers know. Fields that the program has added since are there too.
    """

    __slots__ = ("_fields",)
    if TYPE_CHECKING:
        _fields: dict[str, Any]

    def __init__(self, fields: dict[str, Any]) -> None:
        object.__setattr__(self, "_fields", fields)

    if not TYPE_CHECKING:  # type checkers report a name that no subclass declares

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return self._fields[name]
            except KeyError:
                raise AttributeError(
                    f"{type(self).__name__} has no {name!r}: it has {', '.join(self._fields)}"
                ) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._fields])

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._fields.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(self) is type(other) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return type(self), (self._fields,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"


class Grid:
    """A table of text cells, the first columns to the left, the others to the right."""

    def __init__(
        self, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str], left: int = 1
    ) -> None:
        self.title, self.heads, self.rows, self.lines = title, list(heads), [list(row) for row in rows], list(lines)
        self.left = left

    def text(self) -> str:
        """The table for a terminal; long cells are shortened."""
        all_rows = [[cell if len(cell) <= 40 else cell[:39] + "…" for cell in row] for row in [self.heads, *self.rows]]
        widths = [max(len(row[i]) for row in all_rows) for i in range(len(self.heads))]
        made = [
            "  ".join(
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in all_rows
        ]
        return "\n".join([self.title, *made, *self.lines]) + "\n"

    def html(self) -> str:
        heads = "".join(f"<th>{html.escape(head)}</th>" for head in self.heads)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        lines = "<br>".join(html.escape(line) for line in self.lines)
        return (
            f"<b>{html.escape(self.title)}</b><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{lines}</p>"
        )


class Predicted(Record):
    """The prediction for one GPU at its peak, in bytes. The parts add up to peak_allocated_bytes.

    peak_allocated_bytes is what torch.cuda.max_memory_allocated reports. overhead_bytes is outside of PyTorch's
    allocator: the CUDA context, kernels, NCCL. slack_bytes is what the allocator reserves beyond the peak, least and
    most. device_used_bytes is what nvidia-smi shows.

    >>> import devmap
    >>> devmap.plan("gpt2", gpus=2).devices[0].predicted.peak_allocated_bytes > 2**28
    True
    """

    __slots__ = ()
    if TYPE_CHECKING:
        params_bytes: int
        grads_bytes: int
        optimizer_state_bytes: int
        activations_bytes: int
        kv_cache_bytes: int
        workspace_bytes: int
        comm_buffers_bytes: int
        peak_allocated_bytes: int
        overhead_bytes: int
        slack_bytes: list[int]
        device_used_bytes: int
        peak_at: str

    @property
    def peak_range_bytes(self) -> list[int]:
        """The least and the most that the peak may be. Both are the peak if it is known exactly."""
        peak = self._fields["peak_allocated_bytes"]
        return list(self._fields.get("peak_range_bytes") or [peak, peak])


class Device(Record):
    """One GPU of a plan.

    >>> import devmap
    >>> device = devmap.plan("gpt2", gpus=2, gpu="rtx-4090").devices[0]
    >>> device.device, device.capacity_bytes // 2**30, device.verdict
    (0, 23, 'fits')
    """

    __slots__ = ()
    if TYPE_CHECKING:
        device: int
        capacity_bytes: int
        reserved_bytes: int
        headroom_bytes: int

    @property
    def predicted(self) -> Predicted:
        return Predicted(self._fields["predicted"])

    @property
    def verdict(self) -> Verdict:
        """ "fits", "no", or "tight": the peak fits, but fragmentation of PyTorch's memory may exceed the GPU."""
        if self._fields.get("verdict"):
            found: Verdict = self._fields["verdict"]
            return found
        free = int(self._fields["headroom_bytes"])
        return "no" if free < 0 else "tight" if free < int(self._fields["predicted"]["slack_bytes"][1]) else "fits"


class Stage(Record):
    """Layers that one GPU runs one after another. The seconds are those of one micro-batch.

    >>> import devmap
    >>> [stage.device for stage in devmap.plan("gpt2", gpus=2).stages]
    [0, 1, 0]
    """

    __slots__ = ()
    if TYPE_CHECKING:
        stage: int
        device: Union[int, str]
        units: list[str]
        forward_seconds: Optional[float]
        backward_seconds: Optional[float]
        send_seconds: Optional[float]
        send_back_seconds: Optional[float]
        update_seconds: Optional[float]


class Emitted(str):
    """A file for an engine, as text. usage tells how to make the engine read it, notes what limits its meaning.

    >>> import devmap
    >>> text = devmap.plan("gpt2", gpus=2).emit("accelerate")
    >>> text.startswith("{"), "from_pretrained" in text.usage
    (True, True)
    """

    usage: str
    notes: list[str]


# The parts of a peak, with their columns.
_PARTS = {
    "params_bytes": "Weights", "grads_bytes": "Grads", "optimizer_state_bytes": "Optim", "activations_bytes": "Activ",
    "kv_cache_bytes": "KV", "workspace_bytes": "Work", "comm_buffers_bytes": "Comm",
}  # fmt: skip
_MODES = {"train": "training", "infer": "inference", "load": "weights only", "serve": "serving"}


class Plan(Mapping[str, Union[int, str]]):
    """A placement, the predicted memory of each GPU, and the proof.

    A plan is also the mapping that from_pretrained(…, device_map=plan) takes. document has all of it, as
    devmap.plan/v1. Two plans are equal if their documents are.

    >>> import devmap
    >>> plan = devmap.plan("gpt2", gpus=2)
    >>> plan
    <devmap.Plan gpt2: inference, batch 1 × 1024, device-map on 2 GPUs, largest peak 449.4 MiB (GPU 0), fits, optimal>
    >>> plan["transformer.wte"], plan.verdict, plan.fits
    (0, 'fits', True)
    """

    def __init__(self, text: str, model: Optional[Model] = None, notes: Sequence[str] = ()) -> None:
        try:
            self.document: dict[str, Any] = json.loads(text)
        except ValueError as err:
            raise DevmapError(f"no plan: {err}") from err
        version = self.document.get("format_version") if isinstance(self.document, dict) else None
        if version != "devmap.plan/v1":
            raise DevmapError(f"no plan: its format_version is {version!r}, not 'devmap.plan/v1'")
        self._text, self._model, self._notes = text, model, list(notes)

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Reads a plan that was saved, or that `devmap plan -o` wrote.

        >>> import devmap, tempfile
        >>> plan = devmap.plan("gpt2", gpus=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.save(folder + "/plan.json")
        ...     devmap.Plan.read(folder + "/plan.json") == plan
        True
        """
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as err:
            raise DevmapError(f"{os.fspath(path)}: {err.strerror or err}") from err
        try:
            return cls(text)
        except DevmapError as err:
            raise DevmapError(f"{os.fspath(path)}: {err}") from err

    def save(self, path: Path) -> None:
        """Writes the plan for devmap check, emit, watch, simulate and run. The file appears whole or not at all.

        It replaces an earlier plan, and no other file."""
        path = os.fspath(path)
        spare(path, '"format_version": "devmap.plan/', "plan of devmap")
        temporary = f"{path}.{os.getpid()}.new"
        try:
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                file.write(self._text)
            os.replace(temporary, path)
        except OSError as err:
            raise DevmapError(f"{path}: {err.strerror or err}") from err
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    @property
    def model(self) -> str:
        return str(self.document["model"]["name"])

    @property
    def workload(self) -> dict[str, Any]:
        """The settings, with defaults filled in."""
        return dict(self.document["workload"])

    @property
    def strategy(self) -> str:
        return str(self.document["workload"]["strategy"])

    @property
    def device_map(self) -> dict[str, Union[int, str]]:
        """The GPU of each module, or "cpu" or "disk": from_pretrained(…, device_map=plan.device_map).

        >>> import devmap
        >>> devmap.plan("gpt2", gpus=2).device_map["lm_head"]
        0
        """
        if self.strategy != "device-map":
            raise DevmapError(
                f"the plan for {self.model!r} has no device map: its strategy is {self.strategy}"
                + (" (stages has the layers of each GPU)" if self.document.get("stages") else "")
                + "; strategy='device-map' makes one"
            )
        return dict(self.document["device_map"])

    def __getitem__(self, module: str) -> Union[int, str]:
        return self.device_map[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self.device_map)

    def __len__(self) -> int:
        return len(self.device_map)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Plan):
            return self.document == other.document
        return self.strategy == "device-map" and isinstance(other, Mapping) and self.device_map == dict(other)

    def __hash__(self) -> int:
        return hash((self.document["model"].get("digest"), self.strategy))

    def __reduce__(self) -> tuple[type[Plan], tuple[str]]:
        return Plan, (self._text,)

    @property
    def devices(self) -> list[Device]:
        return [Device(fields) for fields in self.document["devices"]]

    @property
    def peaks(self) -> list[int]:
        """The predicted peak of each GPU in bytes, as torch.cuda.max_memory_allocated reports it.

        >>> import devmap
        >>> [round(peak / 2**30, 2) for peak in devmap.plan("gpt2", gpus=2).peaks]
        [0.44, 0.41]
        """
        return [int(device["predicted"]["peak_allocated_bytes"]) for device in self.document["devices"]]

    @property
    def verdict(self) -> Verdict:
        """ "fits", "no", or "tight": every peak fits, but fragmentation of PyTorch's memory may exceed a GPU."""
        if self.document.get("verdict"):
            found: Verdict = self.document["verdict"]
            return found
        verdicts = {device.verdict for device in self.devices}
        return "no" if "no" in verdicts else "tight" if "tight" in verdicts else "fits"

    @property
    def fits(self) -> bool:
        """Whether every peak fits its GPU; verdict tells if it is tight."""
        return self.verdict != "no"

    @property
    def stages(self) -> list[Stage]:
        """The layers of each GPU, in order of execution. Empty for ddp, zero, fsdp and hsdp."""
        return [Stage(fields) for fields in self.document.get("stages") or []]

    @property
    def warnings(self) -> list[str]:
        """The assumptions and limits of the plan.

        >>> import devmap
        >>> devmap.plan("llama-3.2-1b", gpus=["24GiB", "24GiB"], gpu="rtx-4090").warnings
        []
        """
        return [*self._notes, *map(keywords, self.document.get("warnings") or [])]

    @property
    def step_seconds(self) -> Optional[float]:
        """The time of one training step or one inference; None in mode "load"."""
        seconds = self.document.get("step_seconds")
        return None if seconds is None else float(seconds)

    @property
    def imbalance(self) -> float:
        """The largest peak divided by the mean of all peaks."""
        return float(self.document["imbalance"])

    @property
    def objective(self) -> dict[str, Any]:
        """What was minimised, its value, the lower bound, the gap and the status."""
        return dict(self.document["objective"])

    def table(self) -> str:
        """A table of the GPUs with the parts of their peaks, the proof and the warnings.

        >>> import devmap
        >>> print(devmap.plan("gpt2", gpus=2, mode="load", gpu="rtx-4090").table(), end="")
        gpt2 · weights only, 32-true · 2 × rtx-4090 · device-map (accelerate)
        GPU  Layers                    Weights  Peak  Used   Free
        0    wte, wpe, h.0–2, lm_head     0.23  0.23  4.1%  22.60
        1    h.3–11, ln_f                 0.24  0.24  4.2%  22.59
        GiB at each GPU's peak. Used and Free count the CUDA context.
        Fits. Fullest: GPU 1, 4.19% (1011.3 MiB of 23.58 GiB). Optimal: lower bound 4.19% (search).
        Max/mean 1.03.
        """
        return self._grid().text()

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        return self._grid().html()

    def _grid(self) -> Grid:
        parts = {part: head for part, head in _PARTS.items() if any(d["predicted"].get(part) for d in self._fields())}
        layers = self._layers()
        rows = []
        for device in self._fields():
            predicted = device["predicted"]
            used = predicted["peak_allocated_bytes"] + predicted["overhead_bytes"]
            budget = device["capacity_bytes"] - device.get("reserved_bytes", 0)
            sizes = [predicted.get(part, 0) for part in parts] + [predicted["peak_allocated_bytes"]]
            rows.append([
                str(device["device"]), *([layers.get(device["device"], "")] if layers else []),
                *(f"{size / 2**30:.2f}" for size in sizes),
                f"{100 * used / budget:.1f}%", f"{device['headroom_bytes'] / 2**30:.2f}",
            ])  # fmt: skip
        heads = ["GPU", *(["Layers"] if layers else []), *parts.values(), "Peak", "Used", "Free"]
        lines = ["GiB at each GPU's peak. Used and Free count the CUDA context.", self._proof()]
        lines = [*filter(None, lines), *("note: " + note for note in self.warnings)]
        return Grid(self._title(), heads, rows, lines, 2 if layers else 1)

    def _fields(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["devices"]
        return found

    def _title(self) -> str:
        work = self.document["workload"]
        parts = [_purpose(work)]
        parts += [str(work[name]) for name in ("precision", "optimizer") if work.get(name)]
        if work.get("optimizer") and work["mode"] != "train":
            parts.pop()
        engine = f" ({work['runtime']})" if work.get("runtime") else ""
        return f"{self.model} · {', '.join(parts)} · {self._hardware()} · {work['strategy']}{engine}"

    def _hardware(self) -> str:
        names = [str(one.get("name") or "GPU") for one in (self.document.get("topology") or {}).get("devices", [])]
        count = len(self._fields())
        return f"{count} × {names[0] if len(set(names)) == 1 else 'GPUs'}"

    def _layers(self) -> dict[Union[int, str], str]:
        of: dict[Union[int, str], list[str]] = {}
        for stage in self.document.get("stages") or []:
            of.setdefault(stage["device"], []).extend(stage["units"])
        return {device: shortened(names) for device, names in of.items()}

    def _proof(self) -> str:
        goal = self.document.get("objective") or {}
        if not isinstance(goal.get("value"), (int, float)):
            return ""
        lower, said = goal.get("lower_bound"), {"fits": "Fits.", "tight": "Tight."}.get(self.verdict, "Does not fit.")
        if goal.get("name") != "memory":
            bound = "–" if lower is None else f"{lower:.4g} s"
            value = f"{goal.get('name')} {goal['value']:.4g} s"
            return f"{said} Objective: {value}, lower bound {bound}, {goal.get('status')}."
        bound = "–" if lower is None else f"{100 * lower:.2f}%"
        used = [d["predicted"]["peak_allocated_bytes"] + d["predicted"]["overhead_bytes"] for d in self._fields()]
        budgets = [d["capacity_bytes"] - d.get("reserved_bytes", 0) for d in self._fields()]
        most = max(range(len(used)), key=lambda i: used[i] / budgets[i])
        why = f" ({goal['bound']})" if goal.get("bound") else ""
        return (
            f"{said} Fullest: GPU {self._fields()[most]['device']}, {100 * goal['value']:.2f}% ({gib(used[most])} of "
            f"{gib(budgets[most])}). {str(goal.get('status')).capitalize()}: lower bound {bound}{why}.\n"
            f"Max/mean {self.imbalance:.2f}."
        )

    def emit(self, engine: str, path: Optional[Path] = None, model: Optional[Path] = None) -> Emitted:
        """The plan in the form that an engine reads: "accelerate", "ms-swift", "deepspeed", "torch-check", ….

        It is written to path, if one is given. model tells where the model is, if not where it was planned from.

        >>> import devmap
        >>> devmap.plan("gpt2", gpus=2).emit("accelerate").splitlines()[1]
        ' "transformer.wte": 0,'
        """
        words = [f"--for={engine}"]
        if path is not None:
            words.append(f"--output={os.fspath(path)}")
        if model is not None:
            words.append(f"--model={os.fspath(model)}")
        with PlanFile(self) as file:
            ran = run(["emit", file, *words])
        text = ran.stdout
        if path is not None:
            with open(path, encoding="utf-8", newline="") as written:
                text = written.read()
        emitted = Emitted(text)
        usage, *notes = ran.stderr.splitlines() or [""]
        emitted.usage, emitted.notes = usage.partition(": ")[2], [note.replace("note: ", "", 1) for note in notes]
        return emitted

    def report(
        self,
        path: Optional[Path] = None,
        measured: Optional[Path] = None,
        model: Optional[Path] = None,
        *,
        force: bool = False,
    ) -> str:
        """One HTML page with pictures: the answer, GPUs, memory and time over the step, and what would help.

        It is written to path, if one is given. force replaces a file that is no page of devmap. measured is a report of
        `devmap run` or `devmap watch` to compare with.
        model tells where the model is, if not where it was planned from.

        >>> import devmap
        >>> devmap.plan("gpt2", gpus=2).report().startswith("<!DOCTYPE html>")
        True
        """
        words = [f"--{name}={os.fspath(value)}" for name, value in (("run", measured), ("model", model)) if value]
        if path is not None:
            words.append(f"--output={os.fspath(path)}")
        if force:
            words.append("--force")
        with PlanFile(self) as file:
            ran = run(["report", file, *words])
        if path is None:
            return ran.stdout
        with open(path, encoding="utf-8", newline="") as written:
            return written.read()

    def __repr__(self) -> str:
        peaks = self.peaks
        most = max(range(len(peaks)), key=peaks.__getitem__)
        parts = [
            _purpose(self.document["workload"]),
            f"{self.strategy} on {len(peaks)} GPU{'s' if len(peaks) != 1 else ''}",
            f"largest peak {gib(peaks[most])} (GPU {self._fields()[most]['device']})",
            self.verdict,
            str((self.document.get("objective") or {}).get("status", "")),
        ]
        count = len(self.warnings)
        if count:
            parts.append(f"{count} warning{'s' if count > 1 else ''}")
        return f"<devmap.Plan {self.model}: {', '.join(part for part in parts if part)}>"


def _purpose(work: Mapping[str, Any]) -> str:
    said = _MODES.get(work["mode"], str(work["mode"]))
    if work["mode"] != "load" and work.get("batch") and work.get("seq"):
        return f"{said}, batch {work['batch']} × {work['seq']}"
    return said


def shortened(names: Sequence[str]) -> str:
    """Names of layers without what all share, and runs of numbers as one.

    >>> shortened(["model.embed", "model.layers.0", "model.layers.1", "model.layers.2", "lm_head"])
    'embed, layers.0–2, lm_head'
    """
    out: list[str] = []
    run: Optional[tuple[str, int, int]] = None
    for name in [*names, ""]:
        parts = name.split(".")
        if len(parts) > 1 and parts[0] in ("model", "transformer", "module", "bert", "encoder", "decoder"):
            parts = parts[1:]
        stem, last = ".".join(parts[:-1]), parts[-1]
        if run and last.isdigit() and stem == run[0] and int(last) == run[2] + 1:
            run = (stem, run[1], run[2] + 1)
            continue
        if run:
            out.append(f"{run[0]}.{run[1]}" + (f"–{run[2]}" if run[2] > run[1] else ""))
            run = None
        if stem and last.isdigit():
            run = (stem, int(last), int(last))
        elif name:
            out.append(".".join(parts))
    return ", ".join(out)


class PlanFile:
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
