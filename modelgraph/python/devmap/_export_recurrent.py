"""Selective state-space mixers, recognised by the parameters that their recurrence has (Gu and Dao 2023, §3)."""

from __future__ import annotations

from ._export_flow import Flow, within
from ._export_part import Part


def mixers(flow: Flow) -> list[Part]:
    """Modules with a decay of each channel and state (A_log) and a convolution over time before it: Mamba."""
    parts = []
    for path, module in flow.trace.modules.items():
        decay = module._parameters.get("A_log")
        convolution = getattr(module, "conv1d", None)
        if (
            decay is None
            or decay.dim() != 2
            or convolution is None
            or not hasattr(module, "dt_proj")
            or not hasattr(module, "in_proj")
        ):
            continue
        inner, state = decay.shape
        op = {
            "kind": "state-space",
            "dim": module.in_proj.weight.shape[1],
            "inner": inner,
            "state": state,
            "kernel": convolution.weight.shape[-1],
            "dt_rank": module.dt_proj.weight.shape[1],
        }
        steps = {at for at, step in enumerate(flow.steps) if within(step.scope, path)}
        calls = [call for call in flow.trace.calls if call.path == path and call.inputs]
        if not calls:
            continue
        params = {name for names in flow.trace.parameters.values() for name in names if within(name, path)}
        shape = flow.shape(calls[0].inputs[0])
        parts.append(
            Part(path, op, steps, params, calls[0].inputs[0], tokens=shape[0] * (shape[1] if len(shape) > 2 else 1))
        )
    return parts
