"""What one forward shows of a module."""

from __future__ import annotations

import dataclasses
from math import prod
from typing import Any

import torch

from ._export_copy import copy_of
from ._export_flow import Flow
from ._export_growth import declared, resized, sizes
from ._export_inputs import prepare, usual
from ._export_join import joined, parts_of
from ._export_links import links
from ._export_notes import of_trace
from ._export_part import Part
from ._export_rest import OWN_CODE, Bytes, rest_of
from ._export_run import reason, run
from ._export_streams import lengths, streams
from ._export_trace import Trace, tensors_in
from ._export_tree import Layer


@dataclasses.dataclass
class Seen:
    """Layers with what is known of them."""

    layers: list[Layer]
    ran: bool = False
    parts: dict[int, Part] = dataclasses.field(default_factory=dict)  # by the layer's id
    inputs: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    streams: dict[str, dict | None] = dataclasses.field(default_factory=dict)
    declared: dict[str, dict] = dataclasses.field(default_factory=dict)
    taken: dict[str, Any] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Look:
    """One forward, and what it showed."""

    trace: Trace
    layers: list[Layer]
    parts: dict[int, Part]
    inputs: dict[str, list[str]]
    rest: dict[str, Bytes]
    rows: dict[str, int]  # of the layers without an operation
    fault: str | None
    warnings: list[str]


def look(module: torch.nn.Module, layers: list[Layer], units: dict[str, str], inputs: Any) -> Seen:
    """Runs a copy of the module and finds what devmap has operations for, and the rest."""
    given = inputs if inputs is not None else usual(module)
    if given is None:
        return Seen(layers, warnings=["inputs was not given: no forward was run, so that only weights are known"])
    args, kwargs, values = prepare(given)
    try:
        copy_of(module)
    except Exception as error:  # noqa: BLE001 - what a class does to forbid it is its own
        return Seen(
            layers,
            warnings=[
                f"{type(module).__name__} cannot be copied ({reason(error)}): no forward was run, so that only weights "
                "are known"
            ],
        )
    first = _once(module, layers, units, args, kwargs, values)
    size = lengths(args, kwargs)
    seen = Seen(first.layers, True, first.parts, first.inputs, warnings=first.warnings)
    if first.fault is not None:
        seen.warnings.append(
            f"the forward stopped before its end ({first.fault}): what came after is known by its weights alone"
        )
    seen.streams = streams(seen.layers, seen.parts, seen.inputs, first.rows, *size)
    if first.rest:
        _declare(seen, first, size, lambda new: _again(module, layers, units, args, kwargs, values, size, new))
    return seen


def _once(module, layers: list[Layer], units: dict[str, str], args: tuple, kwargs: dict, values: dict) -> Look:
    twin = copy_of(module)
    before = [name for name, _ in twin.named_parameters()]
    trace, result, fault = run(twin, args, kwargs, values)
    flow = Flow(trace)
    out, parts = joined(layers, parts_of(flow, units, _logits(flow, result)), units, trace.modules)
    inputs, made = links(flow, out, parts)
    rest = rest_of(flow, out, parts, made)
    return Look(trace, out, parts, inputs, rest, _rows(trace, rest), fault, of_trace(trace, twin, before))


def _rows(trace: Trace, rest: dict[str, Bytes]) -> dict[str, int]:
    """Rows of what layers without an operation are called with."""
    out: dict[str, int] = {}
    for call in trace.calls:
        if call.path in rest and call.path not in out:
            shapes = [trace.tensors[number].shape for number in call.inputs if trace.tensors[number].dim() > 1]
            if shapes:
                out[call.path] = prod(shapes[0][:-1])
    return out


def _again(module, layers, units, args, kwargs, values, size, new) -> dict[str, Bytes]:
    """The bytes of the same forward at another size; none where it does not run at that."""
    known = dict(values)
    other_args, other_kwargs = resized(args, size, new, known), resized(kwargs, size, new, known)
    found = _once(module, layers, units, other_args, other_kwargs, known)
    return found.rest if found.fault is None else {}


def _declare(seen: Seen, first: Look, size: tuple[int, int, int], again) -> None:
    """Declared costs of what has no operation, in the layers' order."""
    batch, seq, target = size
    points = sizes(batch, seq, target)
    runs = [first.rest] + [again(point) for point in points[1:]]
    seen.taken = {"batch": batch, "precision": _precision(first)}
    if seq:
        seen.taken["seq"] = seq
    if target:
        seen.taken["target_seq"] = target
    out: list[Layer] = []
    still: list[str] = []
    for layer in first.layers:
        out.append(layer)
        for name in (layer.name, f"{layer.name}.{OWN_CODE}"):
            if name not in first.rest:
                continue
            at = [run[name] for run in runs if name in run]
            stream = seen.streams.get(layer.name) or {"kind": "text"}
            which = {"text": 1, "target": 2}.get(stream["kind"], 0)
            mine = [(point[0], point[which] if which else 1) for point in points[: len(at)]]
            costs, known = declared(mine, at, bool(which and mine[0][1]) and len(at) == len(points) > 3)
            if not known:
                still.append(name)
            seen.declared[name] = costs
            if name != layer.name:
                out.append(Layer(name, None, layer.unit or layer.name))
                seen.inputs[name] = [layer.name]
                if layer.name in seen.streams:
                    seen.streams[name] = seen.streams[layer.name]
    seen.layers = out
    if still:
        seen.warnings.append(
            f"the bytes of {still[0]}{f' and {len(still) - 1} more' if len(still) > 1 else ''} follow no simple rule "
            f"of batch and length: they hold for {batch} × {seq or 'the'} tokens of this export"
        )


def _precision(first: Look) -> str:
    """The precision that the forward ran in, as devmap's --precision calls it."""
    count: dict[torch.dtype, int] = {}
    for number in first.trace.parameters:
        tensor = first.trace.tensors[number]
        count[tensor.dtype] = count.get(tensor.dtype, 0) + tensor.numel()
    names = {torch.bfloat16: "bf16-true", torch.float16: "16-true", torch.float32: "32-true"}
    floats = [dtype for dtype in count if dtype in names]
    return names[max(floats, key=count.__getitem__)] if floats else "32-true"


def _logits(flow: Flow, result: Any) -> int | None:
    """The tensor that a loss would read: what the result calls so, or the one that it is; where the forward stopped,
    the last product as wide as the vocabulary."""
    if result is None:
        rows = {
            flow.shape(number)[0]
            for step in flow.steps
            if step.name == "embedding"
            for number in step.inputs
            if flow.weight(number)
        }
        made = [step.outputs[0] for step in flow.steps if flow.matrix(step) and flow.width_out(step) in rows]
        return made[-1] if made else None
    if hasattr(result, "items"):
        for name in ("logits", "prediction_logits", "start_logits"):
            if isinstance(result.get(name), torch.Tensor):
                return flow.trace.number(result[name])
        return None
    tensors = tensors_in(result)
    return flow.trace.number(tensors[0]) if len(tensors) == 1 else None
