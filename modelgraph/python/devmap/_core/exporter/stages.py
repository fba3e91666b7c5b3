"""The order in which layers run, and those that one stage of a pipeline must hold.

A stage of torch.distributed.pipelining runs from the first call of one of its modules to the next stage's (measure/placed.py:
_Stages). Results cross to every later stage. A module that is called again later, or a parameter that other code reads
later, binds all layers between.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

from .module import Layer

Events = Iterable[tuple[str, tuple[str, ...], str]]  # Trace.events


def in_order(layers: Sequence[Layer], events: Events) -> list[Layer]:
    """Layers in the order of their first calls, those of a unit together. The model's own tensors are first."""
    called: dict[str, int] = {}
    for at, (path, names, _) in enumerate(events):
        if not names:
            called.setdefault(path, at)
    units: dict[str, tuple[int, int]] = {}
    last = -1
    for index, layer in enumerate(layers):
        last = called.get(layer.name, last)  # one that is not called stays behind the one before
        unit = layer.unit or layer.name
        units[unit] = min(units.get(unit, (last, index)), (last, index))
    return sorted(layers, key=lambda layer: units[layer.unit or layer.name])


def staged(layers: Sequence[Layer], events: Events, ties: Iterable[list[str]]) -> list[dict[str, Any]]:
    """The groups of layers, with the line that binds each. Names of one parameter (ties) bind too: copies would train apart."""
    units: list[str] = []
    part: dict[str, int] = {}  # of layers and units
    owner: dict[str, int] = {}  # of parameters
    first: dict[int, str] = {}  # layer of a part
    for layer in (one for one in layers if one.params):
        unit = layer.unit or layer.name
        units += [] if units[-1:] == [unit] else [unit]
        first.setdefault(len(units) - 1, layer.name)
        part[unit] = part[layer.name] = len(units) - 1
        owner.update((f"{layer.name}.{name}" if name else layer.name, len(units) - 1) for name, _ in layer.params)
    now, ranges = 0, []
    for names in ties:
        here = {owner[name] for name in names if name in owner}
        if len(here) > 1:
            ranges.append((min(here), max(here), f"{names[0]} and {names[-1]} are one parameter, whose copies would train apart"))
    for path, names, line in events:
        here = {owner[name] for name in names if name in owner} if names else {_nearest(part, path)} - {None}
        if not here or now in here:
            continue
        at = min(here, key=lambda one: abs(one - now))
        if not names and at > now:
            now = at
        else:
            said = f"{line} reads {names[0]}" if names else f"{line} calls {path}"
            ranges.append((min(at, now), max(at, now), said + " when a later stage could run"))
    return [_group(begin, end, said, units, first) for begin, end, said in _merged(ranges)]


def _nearest(part: dict[str, int], path: str) -> Optional[int]:
    while path and path not in part:
        path = path.rpartition(".")[0]
    return part.get(path)


def _merged(ranges: list[tuple[int, int, str]]) -> list[tuple[int, int, list[str]]]:
    """Ranges that have a part in common as one."""
    out: list[tuple[int, int, list[str]]] = []
    for begin, end, said in sorted(ranges):
        if out and begin <= out[-1][1]:
            before = out[-1]
            out[-1] = (before[0], max(end, before[1]), [*before[2], said])
        else:
            out.append((begin, end, [said]))
    return out


def _group(begin: int, end: int, said: list[str], units: list[str], first: dict[int, str]) -> dict[str, Any]:
    lines = list(dict.fromkeys(said))
    more = f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""
    between = f" and the {end - begin - 1} between them" if end - begin > 1 else ""
    why = f"one stage must hold {units[begin]} and {units[end]}{between}: {lines[0]}{more}"
    if begin == 0 and end == len(units) - 1:
        why += "; these are all parts, so more stages need a module that is called once and alone reads its parameters"
    return {"layers": [first[at] for at in range(begin, end + 1)], "why": why}
