"""Parts that must be on one GPU, since a module's own code reads tensors of both.

Accelerate's hooks move what a module is called with, and nothing between two calls. One forward with each part on a GPU
of its own shows every operation between parts.
"""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import DevmapError
from ..measure.placed import MOST
from .. import verified
from ..verified import LOST
from .module import Layer


@dataclasses.dataclass
class Groups:
    """Layers that one GPU holds, by name, and what is to be said of them."""

    joined: list[list[str]]
    warnings: list[str]


def groups_of(module: torch.nn.Module, layers: list[Layer], inputs: Any) -> Groups:
    """The groups of a module that is called with inputs."""
    parts: dict[str, str] = {}  # unit to its first layer
    for layer in layers:
        if layer.params or layer.buffers:
            parts.setdefault(layer.unit or layer.name, layer.name)
    if len(parts) < 2:
        return Groups([], [])
    numbers = {part: 1 + number % (MOST - 1) for number, part in enumerate(parts)}
    bare = {name for name in parts if "." not in name and not hasattr(getattr(module, name, None), "forward")}
    keys = {key: numbers[part] for part in parts for key in _keys(module, part, layers)}
    args, kwargs = inputs
    try:
        ran = verified.run(module, keys, args, kwargs, backward=False, stops=False, main=0)
    except DevmapError as error:
        return Groups([], [f"which parts must be on one GPU was not seen: {error}"])
    warnings = [f"which parts must be on one GPU was seen up to {ran['failed']}"] if ran["failed"] else []
    part_of = {key: part for part in parts for key in _keys(module, part, layers)}
    first = {number: part for part, number in reversed(numbers.items())}
    union = _Union()
    root = next(iter(parts))
    for name in bare:
        union.join(root, name)
    lines: dict[str, list[tuple[str, str, str]]] = {}
    for where, line, operation, devices, called in ran["meetings"]:
        if "cpu" in devices:
            warnings.append(
                f"{operation} at {line} in {where or 'the model'} reads a tensor that no hook moves from the CPU: a map "
                "fails there; register it as a buffer or a module"
            )
            continue
        found = []
        for device, key in zip(devices, called):
            number = int(device.partition(":")[2])
            found.append(root if number == 0 else part_of.get(key) if len(parts) >= MOST and key else first[number])
        for one in found[1:]:
            union.join(found[0], one)
        lines.setdefault(found[0], []).append((where, line, operation))
    joined = [[parts[name] for name in parts if union.of(name) == group] for group in dict.fromkeys(map(union.of, parts))]
    joined = [group for group in joined if len(group) > 1]
    for group in joined:
        mine = [one for name, found in lines.items() if parts[name] in group for one in found]
        warnings.append(_said(group, mine, len(group) == len(parts)))
    return Groups(joined, warnings)


def _keys(module: torch.nn.Module, part: str, layers: list[Layer]) -> list[str]:
    """The keys of a device map for a unit: itself, its layers, or their tensors (modelgraph/unit.go: unitKeys)."""
    inside = [layer for layer in layers if (layer.unit or layer.name) == part]

    def whole(path: str) -> bool:
        under = [layer for layer in layers if layer.name == path or layer.name.startswith(path + ".")]
        return bool(under) and all(layer in inside for layer in under)

    if whole(part) and all(layer.name == part or layer.name.startswith(part + ".") for layer in inside):
        return [part]
    found: list[str] = []
    for layer in inside:
        if whole(layer.name):
            found.append(layer.name)
        else:
            found += [f"{layer.name}.{name}" for name, _ in layer.params + layer.buffers]
    return found


def _said(group: list[str], found: list[tuple[str, str, str]], all_of_it: bool) -> str:
    places = list(dict.fromkeys(f"{line} ({operation}, {where or 'the model'})" for where, line, operation in found))
    names = ", ".join(group[:3]) + (f" and {len(group) - 3} more" if len(group) > 3 else "")
    more = f" and {len(places) - 2} more lines" if len(places) > 2 else ""
    said = f"under a device map, one GPU must hold {names}: "
    if not places:
        return said + "they are the model's own tensors, which Accelerate keeps on the first GPU; modules can be apart"
    lost = all(operation.endswith(LOST) for _, _, operation in found)
    said += f"{' and '.join(places[:2])}{more} " + ("would not reach the caller, who reads it later" if lost else "joins their tensors, and no hook moves these")
    if all_of_it:
        said += "; these are all parts, so more GPUs do not help until that line " + ("returns what it writes" if lost else "moves one tensor, as with .to(other.device)")
    return said


class _Union:
    """Sets of names."""

    def __init__(self) -> None:
        self.above: dict[str, str] = {}

    def of(self, name: str) -> str:
        while name in self.above:
            name = self.above[name]
        return name

    def join(self, one: str, other: str) -> None:
        one, other = self.of(one), self.of(other)
        if one != other:
            self.above[other] = one
