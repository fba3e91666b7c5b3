"""The answers of devmap besides a plan, and its refusals with the changes that help."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from .errors import DevmapError, UsageError
from .flags import COMMANDS, PlanFlags
from .plan import Device, Grid, Plan, Record, gib
from .words import keywords, row_keywords, value_of


class Remedy(Mapping[str, object]):
    """A change under which the model fits: a mapping of the keywords to set.

    A keyword whose value is None must be left out. text describes the change, line is how the command line prints it,
    flags are all keywords of the call with the change, and plan() plans with them.

    >>> import devmap
    >>> try:
    ...     devmap.plan("llama-3.1-8b", gpus=2, gpu="rtx-4090", mode="train", batch=4)
    ... except devmap.Infeasible as error:
    ...     more = [remedy for remedy in error.remedies if "gpus" in remedy]
    >>> more[0]["gpus"] > 2, more[0].plan().fits
    (True, True)
    """

    def __init__(self, change: Mapping[str, object], line: str) -> None:
        self._change = dict(change)
        self.line, self.text = line, keywords(line)
        self._asked: dict[str, Any] = {}
        self._again: Optional[Callable[..., Plan]] = None

    def asked(self, flags: Mapping[str, Any], again: Callable[..., Plan]) -> None:
        """Notes the call that the change is for."""
        self._asked, self._again = dict(flags), again

    @property
    def flags(self) -> PlanFlags:
        """All keywords of the call, with the change made: devmap.plan(model, **remedy.flags)."""
        merged = {**self._asked, **self._change}
        return cast(PlanFlags, {name: value for name, value in merged.items() if value is not None})

    @property
    def verdict(self) -> str:
        """Whether it "fits", or is "tight": fragmentation of PyTorch's memory may then exceed the GPU."""
        return "tight" if re.search(r"\(tight\)|, tight\b", self.line) else "fits"

    def plan(self) -> Plan:
        """The plan with the change."""
        if self._again is None:
            raise DevmapError("this remedy is of no call: pass its keywords to devmap.plan")
        return self._again(self.flags)

    def __getitem__(self, name: str) -> object:
        return self._change[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._change)

    def __len__(self) -> int:
        return len(self._change)

    def __repr__(self) -> str:
        return f"<devmap.Remedy {self.text}>"


class Infeasible(DevmapError):
    """Nothing fits. remedies are the smallest changes that help.

    missing_bytes is what the fullest GPU lacks, None if it is not known. proved is false if the time limit ended the
    search: a placement may exist then. notes are the assumptions that the answer rests on.

    >>> import devmap
    >>> try:
    ...     devmap.plan("llama-3.1-8b", gpus=1, gpu="rtx-4090", mode="train")
    ... except devmap.Infeasible as error:
    ...     print(error.missing_bytes > 2**30, error.proved, len(error.remedies) > 0)
    True True True
    """

    __module__ = "devmap"

    def __init__(
        self,
        message: str,
        remedies: Sequence[Remedy] = (),
        command: Sequence[str] = (),
        *,
        missing_bytes: Optional[int] = None,
        proved: bool = True,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(message, 3, command)
        self.remedies = list(remedies)
        self.missing_bytes, self.proved, self.notes = missing_bytes, proved, list(notes)

    def __str__(self) -> str:
        return "\n".join([self.message, *("  " + remedy.text for remedy in self.remedies)])


# A flag of a remedy: its name, and a value where it has one, quoted as a shell reads it.
_FLAG = re.compile(r"--([a-z0-9-]+)(?:[= ]('(?:[^']|'\\'')*'|(?!--)[^\s'(][^\s]*))?")
_WITHOUT = re.compile(r" \(without ([^()]*)\)")


def remedy(text: str) -> Remedy:
    """A line as `--batch 4 --strategy ddp (gradient accumulation) (without --schedule): fullest GPU …, fits`."""
    typed = text.rpartition(": fullest GPU ")[0] or text
    flags: dict[str, object] = {}
    for without in _WITHOUT.findall(typed):
        for name, _ in _FLAG.findall(without):
            flags[name.replace("-", "_")] = None
    for name, value in _FLAG.findall(typed.partition(" (")[0]):
        key = name.replace("-", "_")
        flags[key] = value_of(COMMANDS["plan"].get(key, "string"), value)
    return Remedy(flags, text)


_SIZE = re.compile(r"([\d.]+) (TiB|GiB|MiB|KiB|B) (?:are missing|short|missing)|\(([\d.]+)(?: (GiB|MiB))? short\)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNPROVED = re.compile(r"not prove[dn]|within the time limit")


def error_of(command: tuple[str, ...], status: int, stdout: str, stderr: str) -> DevmapError:
    """The error that the program ended with: its JSON form, or the lines on stderr after its name."""
    if status < 0:
        return DevmapError(f"{command[0]} was ended by signal {-status}", status, command)
    document = _document(stdout) or _document(stderr)
    if document is not None:
        said, helps, notes = _of_document(document)
    else:
        said, helps, notes = _of_lines(stderr, status)
    message = keywords("\n".join(said))
    if status == 3:
        missing = document.get("missing_bytes") if document else None
        proved = document.get("proved") if document else None
        return Infeasible(
            message,
            [remedy(line) for line in helps],
            command,
            missing_bytes=missing if isinstance(missing, int) else _missing(message),
            proved=proved if isinstance(proved, bool) else not _UNPROVED.search(message),
            notes=[keywords(note) for note in notes],
        )
    if status == 2:
        return UsageError(message, command)
    return DevmapError(message, status, command)


def _document(text: str) -> Optional[dict[str, Any]]:
    """A devmap.error/v1 document in an output, if there is one."""
    at = text.rfind("{", 0, max(0, text.find('"devmap.error/')))
    if at < 0:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(text[at:])
    except ValueError:
        return None
    return document if isinstance(document, dict) and "error" in document else None


def _of_document(document: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    error, helps = document["error"], []
    if isinstance(error, dict):
        document.update(error)
        error = error.get("message", "")
    for one in document.get("remedies") or []:
        if isinstance(one, dict):
            one = one.get("text") or one.get("remedy") or " ".join(one.get("flags") or [])
        helps.append(str(one))
    return [str(error)], helps, [str(note) for note in document.get("notes") or document.get("warnings") or []]


def _of_lines(stderr: str, status: int) -> tuple[list[str], list[str], list[str]]:
    lines = stderr.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("devmap: ")), 0)
    said = lines[begin:] or [f"ended with status {status} and said nothing"]
    said[0] = said[0][len("devmap: ") :] if said[0].startswith("devmap: ") else said[0]
    notes = [line[len("note: ") :] for line in lines if line.startswith("note: ")]
    said = [line for line in said if not line.startswith("note: ")]
    if status != 3:
        return said, [], notes
    helps = [line for line in said[1:] if line.startswith("  ")]
    return [line for line in said if line not in helps], [line.strip() for line in helps], notes


def _missing(message: str) -> Optional[int]:
    found = _SIZE.search(message)
    if found is None:
        return None
    number, unit = (found[1], found[2]) if found[1] else (found[3], found[4] or "GiB")
    return int(float(number) * _UNITS[unit])


class Fault(Record):
    """One fault of a map: kind is "unknown-module", "split-unit", …, and nearest the module that may be meant.

    >>> import devmap
    >>> devmap.check("gpt2", {"transformer.wteh": 0}, gpus=1).faults[0].kind
    'unknown-module'
    """

    __slots__ = ()
    if TYPE_CHECKING:
        kind: str
        module: str
        message: str
        nearest: str


class Check:
    """Whether a map is right for a model, and the memory of each GPU under it. It is true if there is no fault.

    >>> import devmap
    >>> bool(devmap.check("gpt2", devmap.plan("gpt2", gpus=2)))
    True
    """

    def __init__(self, document: dict[str, Any], warnings: Sequence[str]) -> None:
        self.document, self.warnings = document, [keywords(line) for line in warnings]

    @property
    def faults(self) -> list[Fault]:
        return [Fault(fields) for fields in self.document.get("faults") or []]

    @property
    def devices(self) -> list[Device]:
        return [Device(fields) for fields in self.document.get("devices") or []]

    @property
    def imbalance(self) -> float:
        return float(self.document["imbalance"])

    def __bool__(self) -> bool:
        return not self.faults

    def table(self) -> str:
        """A table of the GPUs, and the faults."""
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        rows = [
            [str(d.device), gib(d.predicted.peak_allocated_bytes), gib(d.headroom_bytes), d.verdict]
            for d in self.devices
        ]
        said = [f"{fault.kind}: {keywords(fault.message)}" for fault in self.faults]
        title = f"{len(said)} fault{'s' if len(said) > 1 else ''}" if said else "no fault"
        return Grid(title, ["GPU", "peak", "free", "verdict"], rows, [*said, *("note: " + n for n in self.warnings)])

    def __repr__(self) -> str:
        faults = self.faults
        if not faults:
            return "<devmap.Check: no fault>"
        kinds = ", ".join(sorted({str(fault.kind) for fault in faults}))
        return f"<devmap.Check: {len(faults)} fault{'s' if len(faults) > 1 else ''} ({kinds})>"


class Unit(Record):
    """A part of a model that one GPU holds whole, such as a decoder block.

    >>> import devmap
    >>> devmap.inspect("gpt2").units[2].name
    'transformer.h.0'
    """

    __slots__ = ()
    if TYPE_CHECKING:
        name: str
        params: int
        params_bytes: int
        flops: int
        activation_bytes: int
        inputs: list[str]


class Inspection:
    """The units of a model, and what each costs.

    >>> import devmap
    >>> devmap.inspect("gpt2")
    <devmap.Inspection gpt2: 124,439,808 parameters, 16 units>
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def model(self) -> str:
        return str(self.document["model"]["name"])

    @property
    def params(self) -> int:
        """The number of parameters, tied ones once."""
        return int(self.document["model"]["params"])

    @property
    def units(self) -> list[Unit]:
        return [Unit(fields) for fields in self.document["units"]]

    def table(self) -> str:
        """A table of the units."""
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        rows = [
            [u.name, f"{u.params:,}", gib(u.params_bytes), f"{u.flops / 1e9:,.1f}", gib(u.activation_bytes)]
            for u in self.units
        ]
        title = f"{self.model}: {self.params:,} parameters"
        return Grid(title, ["unit", "parameters", "weights", "GFLOP", "activations"], rows, [])

    def __repr__(self) -> str:
        return f"<devmap.Inspection {self.model}: {self.params:,} parameters, {len(self.document['units'])} units>"


class Row(Record):
    """One strategy of an estimate. plan() plans it.

    >>> import devmap
    >>> row = devmap.estimate("gpt2", gpus=2, mode="train").fits[0]
    >>> row.keywords["strategy"] == row.strategy
    True
    """

    __slots__ = ()
    if TYPE_CHECKING:
        strategy: str
        runtime: str
        fits: bool
        peak_allocated_bytes: list[int]
        headroom_bytes: int
        communication_bytes: int
        step_seconds: Optional[float]
        flags: list[str]

    @property
    def keywords(self) -> PlanFlags:
        """The keywords of devmap.plan for this strategy."""
        return row_keywords(self._fields["flags"])


class Estimate:
    """Strategies side by side: those that fit first, the fastest on top.

    remedies are changes that help if nothing fits.

    >>> import devmap
    >>> estimate = devmap.estimate("llama-3.1-8b", gpus=8, gpu="h100-80gb", mode="train")
    >>> estimate.plan().strategy == estimate.rows[0].strategy
    True
    """

    def __init__(
        self, document: dict[str, Any], remedies: Sequence[Remedy], again: Optional[Callable[..., Plan]] = None
    ) -> None:
        self.document, self.remedies, self._again = document, list(remedies), again

    @property
    def rows(self) -> list[Row]:
        return [Row(fields) for fields in self.document["rows"]]

    @property
    def fits(self) -> list[Row]:
        """The strategies that fit."""
        return [row for row in self.rows if row.fits]

    def plan(self, row: Optional[Row] = None) -> Plan:
        """The plan of a row; of the best one if none is given."""
        if self._again is None:
            raise DevmapError("this estimate is of no call: devmap.plan(model, **row.keywords) plans a row")
        if row is None and not self.fits:
            raise DevmapError("no strategy fits: see remedies")
        return self._again((row or self.fits[0]).keywords)

    def table(self) -> str:
        """A table of the strategies: whether each fits, its largest peak, what is free, the time of a step.

        >>> import devmap
        >>> print(devmap.estimate("gpt2", gpus=1).table().splitlines()[1])
        strategy         runtime     fits  peak GiB  free GiB  step ms
        """
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        rows = []
        for row in self.rows:
            seconds = "–" if row.step_seconds is None else f"{1000 * row.step_seconds:.1f}"
            fits = dict(row).get("verdict") or ("fits" if row.fits else "no")
            fits = {"fits": "yes"}.get(fits, fits)
            sizes = (max(row.peak_allocated_bytes), row.headroom_bytes)
            rows.append([_strategy(row), row.runtime, fits, *(f"{size / 2**30:.2f}" for size in sizes), seconds])
        lines = [
            f"{one['strategy']} ({one['runtime']}): {keywords(one['reason'])}"
            for one in self.document.get("refused") or []
        ]
        lines += ["  " + remedy.text for remedy in self.remedies]
        title = f"{len(self.fits)} of {len(rows)} strategies fit"
        return Grid(title, ["strategy", "runtime", "fits", "peak GiB", "free GiB", "step ms"], rows, lines, 3)

    def __repr__(self) -> str:
        rows, fits = self.rows, self.fits
        best = ""
        if fits:
            best = f", best {fits[0].strategy} ({fits[0].runtime}), {gib(max(fits[0].peak_allocated_bytes))}"
        return f"<devmap.Estimate: {len(fits)} of {len(rows)} strategies fit{best}>"


def _strategy(row: Row) -> str:
    """The strategy with the schedule of a pipeline."""
    asked = row.keywords
    schedule, count = asked.get("schedule"), asked.get("micro_batches")
    parts = [row.strategy, *([schedule] if schedule else []), *([f"{count} micro-batches"] if count else [])]
    return ", ".join(parts)


class Report:
    """What a command did on the GPUs, compared with a plan. It is true if the verdict is "pass".

    exit_status is the command's own; verdict is "pass", "fail" or "inconclusive", and reasons explain it. document has
    all of it, as devmap.report/v1. devmap.watch returns one.
    """

    def __init__(self, document: dict[str, Any], exit_status: int) -> None:
        self.document, self.exit_status = document, exit_status

    @property
    def verdict(self) -> str:
        return str(self.document.get("verdict") or "inconclusive")

    @property
    def reasons(self) -> list[str]:
        return [str(reason) for reason in self.document.get("reasons") or []]

    @property
    def peaks(self) -> list[Optional[int]]:
        """The measured peak of each GPU in bytes, None if no process told one."""
        return [(one.get("measured") or {}).get("peak_allocated_bytes") for one in self.document.get("devices") or []]

    def __bool__(self) -> bool:
        return self.verdict == "pass"

    def __repr__(self) -> str:
        return f"<devmap.Report: {self.verdict}, exit status {self.exit_status}>"
