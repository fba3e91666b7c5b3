"""Mixtures of experts: a router that chooses, and experts in one tensor or in a list."""

from __future__ import annotations

import torch

from ._export_flow import Flow, within
from ._export_part import Part


def mixtures(flow: Flow, units: dict[str, str]) -> list[Part]:
    """Modules that choose among experts below them."""
    parts: list[Part] = []
    for step in flow.steps:
        if step.name != "topk" or any(within(step.scope, part.path) for part in parts):
            continue
        part = _above(flow, step.scope, units)
        if part is not None:
            parts.append(part)
    return parts


def _above(flow: Flow, path: str, units: dict[str, str]) -> Part | None:
    """The nearest module at path or above that holds experts."""
    unit = units.get(path)
    while path and units.get(path) == unit:
        sizes = _experts(flow.trace.modules[path])
        if sizes is not None and units.get(path, "") != path:
            return _part(flow, path, *sizes)
        path = path.rpartition(".")[0]
    return None


def _experts(module: torch.nn.Module):
    """Experts, hidden and outer width of the experts below a module: stacked, or a list of networks."""
    for part in module.modules():
        stacked = [one for one in part._parameters.values() if one is not None and one.dim() == 3]
        if len(stacked) >= 2 and len({one.shape[0] for one in stacked}) == 1:
            first, last = stacked[0], stacked[-1]
            outer = set(first.shape[1:]) & set(last.shape[1:])
            dim = max(outer, key=list(last.shape[1:]).count) if outer else 0
            hidden = _other(last.shape[1:], dim) if len(outer) == 1 else min(last.shape[1:])
            if len(outer) > 1:
                dim = last.shape[1] if last.shape[1] != hidden else last.shape[2]
            return first.shape[0], hidden, dim, part
        if isinstance(part, torch.nn.ModuleList) and len(part) > 1:
            matrices = [one for one in part[0].parameters() if one.dim() == 2]
            if len(matrices) in (2, 3) and len({type(one) for one in part}) == 1:
                down = (
                    matrices[-1]
                    if len(matrices) == 2
                    else min(matrices, key=lambda one: [two.shape for two in matrices].count(one.shape))
                )
                return len(part), down.shape[1], down.shape[0], part
    return None


def _other(pair, side: int) -> int:
    return pair[1] if pair[0] == side else pair[0]


def _part(flow: Flow, path: str, experts: int, hidden: int, dim: int, holder: torch.nn.Module) -> Part:
    steps = {at for at, step in enumerate(flow.steps) if within(step.scope, path)}
    calls = [call for call in flow.trace.calls if call.path == path]
    choice = [flow.steps[at] for at in sorted(steps) if flow.steps[at].name == "topk"]
    op = {
        "kind": "moe",
        "dim": dim,
        "hidden": hidden,
        "experts": experts,
        "top_k": flow.shape(choice[-1].outputs[0])[-1] if choice else 1,
    }
    shared = _shared(flow, path, holder)
    if shared:
        op["shared_hidden"] = shared
    if _router32(flow, steps, experts):
        op["fp32_routing"] = True
    for at in sorted(steps):
        if flow.steps[at].name in ("silu", "gelu", "relu"):
            op["activation"] = flow.steps[at].name
            break
        if flow.steps[at].name == "sigmoid" and within(flow.steps[at].scope, _path(flow, holder)):
            op["activation"] = "silu"  # x · sigmoid(a x)
            break
    params = {name for names in flow.trace.parameters.values() for name in names if within(name, path)}
    main = calls[0].inputs[0] if calls and calls[0].inputs else -1
    part = Part(path, op, steps, params, main)
    if main >= 0:
        rows = 1
        for side in flow.shape(main)[:-1]:
            rows *= side
        part.tokens = rows
    return part


def _path(flow: Flow, module: torch.nn.Module) -> str:
    return next(path for path, one in flow.trace.modules.items() if one is module)


def _shared(flow: Flow, path: str, holder: torch.nn.Module) -> int:
    """The width of the networks next to the experts, which every token passes."""
    module = flow.trace.modules[path]
    inside: set[int] = {id(part) for part in holder.modules()}
    width = 0
    for part in module.modules():
        linears = [one for one in part.children() if isinstance(one, torch.nn.Linear)]
        if id(part) not in inside and part is not module and len(linears) in (2, 3):
            width += linears[-1].in_features
    return width


def _router32(flow: Flow, steps: set[int], experts: int) -> bool:
    """Whether the router's product is in fp32 while the experts' are not."""
    for at in sorted(steps):
        step = flow.steps[at]
        if flow.matrix(step) is not None and flow.width_out(step) == experts:
            name = flow.matrix(step)
            stored = next(
                (flow.tensor(number) for number, known in flow.trace.parameters.items() if known[0] == name), None
            )
            return (
                flow.tensor(step.outputs[0]).dtype == torch.float32
                and stored is not None
                and stored.dtype != torch.float32
            )
    return False
