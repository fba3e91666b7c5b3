"""Feed-forward networks: two or three projections around an activation."""

from __future__ import annotations

from ._export_activation import activation_of
from ._export_attention import result_of
from ._export_flow import SAME, Flow, common
from ._export_norm import style_of
from ._export_part import Part

_BETWEEN = SAME | {"mul", "rmul"}


def networks(flow: Flow, units: dict[str, str], taken: set[int]) -> list[Part]:
    """Every projection that reads what an activation made of one projection of the same input, or of two."""
    parts: list[Part] = []
    used: set[int] = set()
    for down, step in enumerate(flow.steps):
        if down in taken or down in used or flow.matrix(step) is None:
            continue
        part = _part(flow, down, taken | used, units)
        if part is not None:
            parts.append(part)
            used |= part.steps
    return parts


def _part(flow: Flow, down: int, taken: set[int], units: dict[str, str]) -> Part | None:
    linear = lambda at: flow.matrix(flow.steps[at]) is not None  # noqa: E731
    step = flow.steps[down]
    way = flow.back([flow.main(step)], lambda at: linear(at) or at in taken)
    ups = sorted(at for at in way if linear(at))
    if not 1 <= len(ups) <= 2 or way & taken or down in ups:
        return None
    middle = sorted(way - set(ups))
    found = activation_of(flow, middle)
    if found is None:
        return None
    others = [at for at in middle if at not in found.steps and flow.steps[at].name not in _BETWEEN]
    if others and (style_of(flow, middle)[0] is None or not _normed(flow, others)):
        return None
    if len({flow.plain(flow.main(flow.steps[at])) for at in ups}) > 1:
        return None
    hidden, dim = flow.width_in(step), flow.width_in(flow.steps[ups[0]])
    if flow.width_out(step) != dim:
        return None  # its result does not join what went in: projections of their own
    op = {"kind": "mlp", "dim": dim, "hidden": hidden}
    wide = flow.width_out(flow.steps[ups[0]])
    gates = len(ups) == 2 or wide == 2 * hidden
    if gates:
        op["gated"] = True
        if len(ups) == 1:
            op["fused"] = True
    elif wide != hidden:
        return None
    path = common([step.scope] + [flow.steps[at].scope for at in ups])
    if path == "" or any(units.get(flow.steps[at].scope, "") != units.get(path, "") for at in [down, *ups]):
        return None
    if found.name:
        op["activation"] = found.name
    steps = {down, *ups, *middle}
    op.update(result_of(flow, down, steps))
    params = {name for at in steps for name in flow.params(flow.steps[at])}
    part = Part(path, op, steps, params, flow.main(flow.steps[ups[0]]))
    part.tokens = _rows(flow, part.main)
    return part


def _normed(flow: Flow, steps: list[int]) -> bool:
    """Whether steps are those of one norm, before the last projection (BitNet)."""
    return len({flow.steps[at].scope for at in steps}) == 1


def _rows(flow: Flow, number: int) -> int:
    rows = 1
    for side in flow.shape(number)[:-1]:
        rows *= side
    return rows
