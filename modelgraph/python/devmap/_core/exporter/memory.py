"""Bytes of the layers that no operation describes, and how they grow with batch and length."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import prod
from typing import Any, Callable

import torch

from .flow import SAME, Flow, Part
from .forward import storage, storage_of
from .module import Layer

# What devmap has no operation for: the bytes that torch keeps for it, as declared costs.

#: What a block's own code keeps, in addition to its layers, has this name below the layer before.
OWN_CODE = "forward"


@dataclasses.dataclass
class Bytes:
    """Costs of a layer in one micro-batch, as model.json declares them."""

    activation: int = 0
    workspace: int = 0
    output: int = 0


def rest_of(flow: Flow, layers: list[Layer], of: dict[int, Part], sources: dict[int, str | None]) -> dict[str, Bytes]:
    """Bytes of the layers without an operation that ran, and of the code around one with an operation.

    A storage that an operation saves too is counted there: operations count their inputs.
    """
    owned: set[int] = {at for part in of.values() for at in part.steps}
    elsewhere = {key for at in owned for key in flow.steps[at].saved}
    plain = plain_layers(layers, of)
    steps: dict[str, list[int]] = {}
    for at, step in enumerate(flow.steps):
        if at in owned or not flow.data(step) and not flow.params(step):
            continue
        name = holder_of(step.scope, plain)
        if name is None:
            name = _beside(flow, at, sources)
        if name is not None:
            steps.setdefault(name, []).append(at)
    out: dict[str, Bytes] = {}
    counted: set[int] = set()
    for name, mine in steps.items():
        kept = [key for at in mine for key in flow.steps[at].saved if key not in elsewhere]
        fresh = set(kept) - counted
        counted |= fresh
        activation = sum(flow.trace.sizes[key] for key in fresh)
        if name not in plain and activation == 0:
            continue  # additions and views between layers: nothing stays of them
        end = mine[-1]
        out[name] = Bytes(activation, _workspace(flow, mine, fresh), _size(flow, flow.steps[end].outputs[0]))
    return out


def plain_layers(layers: list[Layer], of: dict[int, Part]) -> dict[str, Layer]:
    """Layers that are modules without an operation, by name."""
    return {layer.name: layer for layer in layers if id(layer) not in of and layer.module is not None and layer.params}


def holder_of(scope: str, plain: dict[str, Layer]) -> str | None:
    """The innermost layer without an operation around a step."""
    path = scope
    while path:
        if path in plain:
            return path
        path = path.rpartition(".")[0]
    return None


def _beside(flow: Flow, at: int, sources: dict[int, str | None]) -> str | None:
    """The layer whose result a step outside of all layers reads last."""
    names = [sources[number] for number in flow.steps[at].inputs if sources.get(number)]
    return f"{names[-1]}.{OWN_CODE}" if names else None


def _workspace(flow: Flow, mine: list[int], kept: set[int]) -> int:
    """The peak above what is kept: in forward, results that no later step reads are gone; in backward a
    step has the gradients of its results and of what it read."""
    inside = set(mine)
    ends: dict[int, int] = {}
    sizes: dict[int, int] = {}
    begins: dict[int, int] = {}
    for at in mine:
        for number in flow.steps[at].outputs:
            key = storage_of(flow.tensor(number))
            if key in kept:
                continue
            begins.setdefault(key, at)
            sizes[key] = storage(flow.tensor(number)).nbytes()
            readers = [one for one in flow.readers.get(number, ()) if one in inside]
            ends[key] = max([ends.get(key, at), *readers])
    alive = max((sum(sizes[key] for key in sizes if begins[key] <= at <= ends[key]) for at in mine), default=0)
    back = 0
    for at in mine:
        step = flow.steps[at]
        if step.name not in SAME:
            back = max(
                back,
                sum(
                    _size(flow, number)
                    for number in step.outputs + flow.data(step)
                    if flow.tensor(number).is_floating_point()
                ),
            )
    return max(alive, back)


def _size(flow: Flow, number: int) -> int:
    tensor = flow.tensor(number)
    return prod(tensor.shape) * tensor.element_size()


# How declared bytes grow with the micro-batch: the same forward at a few sizes, solved exactly.

FIELDS = ("activation", "workspace", "output")


def sizes(batch: int, seq: int, target: int) -> list[tuple[int, int, int]]:
    """Batches, lengths and a decoder's lengths to run at: as many as there are unknowns, and one more that the solution
    must foretell. Lengths keep what they are multiples of, since models cut sequences in halves and chunks."""
    step = max([one for one in (8, 4, 2) if one <= min(seq, target or seq) // 3] + [0])
    step *= min(seq, target or seq) // (3 * step) if step else 0
    if not step:
        return [(batch, seq, target), (batch + 1, seq, target), (batch + 3, seq, target)]
    steps = [(batch, 0), (batch + 1, 0), (batch, 1), (batch, 2), (batch + 1, 1)]
    return [(count, seq - less * step, max(0, target - less * step)) for count, less in steps]


def solve(points: list[tuple[int, int]], bytes_at: list[int], grows: bool) -> dict[str, int] | None:
    """fixed + sequence·B + token·B·S + pair·B·S² through all points, in whole bytes that are not negative; None
    if there is no such form."""
    terms: list[tuple[str, Callable[[int, int], int]]] = [("fixed", lambda b, s: 1), ("sequence", lambda b, s: b)]
    if grows:
        terms += [("token", lambda b, s: b * s), ("pair", lambda b, s: b * s * s)]
    rows = [[Fraction(form(*point)) for _, form in terms] + [Fraction(value)] for point, value in zip(points, bytes_at)]
    found = _gauss([list(row) for row in rows[: len(terms)]])
    if found is None:
        return None
    for row in rows:
        if sum(left * right for left, right in zip(row, found)) != row[-1]:
            return None
    if any(value < 0 or value.denominator != 1 for value in found):
        return None
    return {name: int(value) for (name, _), value in zip(terms, found) if value}


def _gauss(rows: list[list[Fraction]]) -> list[Fraction] | None:
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i]:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i])]
    return [row[-1] for row in rows]


def declared(points: list[tuple[int, int]], at: list[Bytes], grows: bool) -> tuple[dict, bool]:
    """A layer's `declared`, and whether it says how all of its bytes grow."""
    out: dict[str, Any] = {}
    growth: dict[str, dict[str, int]] = {}
    known = True
    for field in FIELDS:
        values = [getattr(one, field) for one in at]
        solved = solve(points, values, grows) if len(points) > 2 else None
        if solved is None:
            out[field + "_bytes"] = values[0]
            known = known and values[0] == 0
            continue
        out[field + "_bytes"] = solved.pop("fixed", 0)
        if solved:
            growth[field + "_bytes"] = solved
    if growth:
        out["growth"] = growth
    return out, known


def resized(value: Any, old: tuple[int, int, int], new: tuple[int, int, int], values: dict[int, torch.Tensor]) -> Any:
    """Inputs at another size: the first side of tensors is the batch, others that are as long as a sequence are one."""
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            return value
        sides = [_side(i, side, old, new) for i, side in enumerate(value.shape)]
        empty = torch.empty(sides, dtype=value.dtype, device="meta")
        known = values.get(id(value))
        if known is not None:
            for i, side in enumerate(sides):
                known = known.index_select(i, torch.arange(side) % known.shape[i])
            values[id(empty)] = known
        return empty
    if isinstance(value, dict):
        return {key: resized(one, old, new, values) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(resized(one, old, new, values) for one in value)
    return value


def _side(i: int, side: int, old: tuple[int, int, int], new: tuple[int, int, int]) -> int:
    if i == 0:
        return new[0] if side == old[0] else side
    for before, after in zip(old[1:], new[1:]):
        if side == before > 1:
            return after
    return side
