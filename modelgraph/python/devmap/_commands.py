"""`devmap.check`, `devmap.inspect` and `devmap.estimate`: the commands of these names, their answers as objects."""

from __future__ import annotations

import json
import os

from ._binary import run
from ._model import Model
from ._plan import Device, Plan
from ._record import Record, gib
from ._words import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Unpack

    from ._errors import Remedy
    from ._flags import CheckFlags, EstimateFlags, InspectFlags
    from ._plan import GPUs, Path


class Fault(Record):
    """What is wrong with a map."""

    __slots__ = ()
    if TYPE_CHECKING:
        kind: str
        module: str
        message: str
        nearest: str


class Check:
    """Whether a map is right for a model, and what each GPU holds under it. True where there is no fault."""

    def __init__(self, document: dict[str, Any], warnings: list[str]) -> None:
        self.document, self.warnings = document, warnings

    @property
    def faults(self) -> list[Fault]:
        return [Fault(fields) for fields in self.document.get("faults") or []]

    @property
    def devices(self) -> list[Device]:
        return [Device(fields) for fields in self.document["devices"]]

    @property
    def imbalance(self) -> float:
        return float(self.document["imbalance"])

    def __bool__(self) -> bool:
        return not self.faults

    def __repr__(self) -> str:
        faults = self.faults
        if not faults:
            return "<devmap.Check: no fault>"
        kinds = ", ".join(sorted({str(fault.kind) for fault in faults}))
        return f"<devmap.Check: {len(faults)} fault{'s' if len(faults) > 1 else ''} ({kinds})>"


class Unit(Record):
    """What must not be split, a decoder block say."""

    __slots__ = ()
    if TYPE_CHECKING:
        name: str
        params: int
        params_bytes: int
        flops: int
        activation_bytes: int
        inputs: list[str]


class Inspection:
    """A model's units, with what each costs under a workload."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def model(self) -> str:
        return str(self.document["model"]["name"])

    @property
    def params(self) -> int:
        """Parameters as the framework registers them, tied ones once."""
        return int(self.document["model"]["params"])

    @property
    def units(self) -> list[Unit]:
        return [Unit(fields) for fields in self.document["units"]]

    def __repr__(self) -> str:
        return f"<devmap.Inspection {self.model}: {self.params:,} parameters, {len(self.document['units'])} units>"


class Row(Record):
    """One strategy. `flags` are words of `devmap plan` that make its plan."""

    __slots__ = ()
    if TYPE_CHECKING:
        strategy: str
        runtime: str
        fits: bool
        peak_allocated_bytes: list[int]
        headroom_bytes: int
        communication_bytes: int
        step_seconds: float | None
        flags: list[str]


class Estimate:
    """Every strategy side by side: those that fit first, the fastest on top."""

    def __init__(self, document: dict[str, Any], remedies: list[Remedy]) -> None:
        self.document, self.remedies = document, remedies

    @property
    def rows(self) -> list[Row]:
        return [Row(fields) for fields in self.document["rows"]]

    @property
    def fits(self) -> list[Row]:
        return [row for row in self.rows if row.fits]

    def __repr__(self) -> str:
        rows, fits = self.rows, self.fits
        best = ""
        if fits:
            best = f", best {fits[0].strategy} ({fits[0].runtime}), {gib(max(fits[0].peak_allocated_bytes))}"
        return f"<devmap.Estimate: {len(fits)} of {len(rows)} strategies fit{best}>"


def check(
    model: object,
    map: Plan | Mapping[str, int | str] | Path,
    *,
    inputs: Any = None,
    no_split: Any = None,
    **flags: Unpack[CheckFlags],
) -> Check:
    """Judges a map: a Plan, a device map (module → GPU), or a file with one. Reports all faults at once."""
    import tempfile

    read = Model(model, inputs, no_split, flags.get("mode") != "load")
    typed = words("check", dict(flags))
    with tempfile.TemporaryDirectory(prefix="devmap-") as folder:
        path = os.path.join(folder, "map.json")
        if isinstance(map, Plan):
            map.save(path)
        elif isinstance(map, (str, os.PathLike)):
            path = os.fspath(map)
        else:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(dict(map), file)
        ran = run(["check", "--json", *typed, "--", read.path, path], allowed=(0, 4))
    return Check(json.loads(ran.stdout), _warnings(ran.stderr))


def inspect(
    model: object, *, inputs: Any = None, no_split: Any = None, **flags: Unpack[InspectFlags]
) -> Inspection:
    """Units, parameters, bytes, FLOPs and activation bytes of a model."""
    read = Model(model, inputs, no_split, flags.get("mode") != "load")
    return Inspection(json.loads(run(["inspect", "--json", *words("inspect", dict(flags)), "--", read.path]).stdout))


def estimate(
    model: object, gpus: GPUs | None = None, *, inputs: Any = None, no_split: Any = None, **flags: Unpack[EstimateFlags]
) -> Estimate:
    """Every strategy side by side. Where none fits the rows say what is missing, and `remedies` what would help."""
    from ._errors import Infeasible

    read = Model(model, inputs, no_split, flags.get("mode") != "load")
    ran = run(["estimate", "--json", *words("estimate", {"gpus": gpus, **flags}), "--", read.path], allowed=(0, 3))
    error = ran.error() if ran.status else None
    document = json.loads(ran.stdout) if ran.stdout else {}
    if error is not None and "rows" not in document:  # an error alone (devmap.error/v1)
        raise error
    return Estimate(document, error.remedies if isinstance(error, Infeasible) else [])


def _warnings(stderr: str) -> list[str]:
    return [line.removeprefix("note: ") for line in stderr.splitlines() if line.startswith("note: ")]
