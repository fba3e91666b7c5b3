"""How declared bytes grow with the micro-batch: the same forward at a few sizes, solved exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable

import torch

from ._export_rest import Bytes

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
