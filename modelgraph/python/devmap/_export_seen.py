"""What one forward shows of a module."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional

import torch

from ._export_copy import copy_of
from ._export_flow import Flow
from ._export_inputs import prepare, usual
from ._export_join import joined, parts_of
from ._export_links import links
from ._export_part import Part
from ._export_run import run
from ._export_streams import streams
from ._export_trace import Trace, tensors_in
from ._export_tree import Layer


@dataclasses.dataclass
class Seen:
    """Layers with what is known of them."""

    layers: List[Layer]
    ran: bool = False
    parts: Dict[int, Part] = dataclasses.field(default_factory=dict)  # by the layer's id
    inputs: Dict[str, List[str]] = dataclasses.field(default_factory=dict)
    streams: Dict[str, Optional[dict]] = dataclasses.field(default_factory=dict)
    warnings: List[str] = dataclasses.field(default_factory=list)


def look(module: torch.nn.Module, layers: List[Layer], units: Dict[str, str], inputs: Any) -> Seen:
    """Runs a copy of the module and finds what devmap has operations for."""
    given = inputs if inputs is not None else usual(module)
    if given is None:
        return Seen(layers, warnings=["inputs was not given: no forward was run, so that only weights are known"])
    args, kwargs, values = prepare(given)
    trace, result, fault = run(copy_of(module), args, kwargs, values)
    seen = Seen(layers, ran=True)
    if fault is not None:
        seen.warnings.append(f"the forward stopped before its end ({fault}): what came after is known by its weights alone")
    for path, why in trace.failed.items():
        seen.warnings.append(f"{path}: its forward could not be followed ({why}): it is known by its modules alone")
    flow = Flow(trace)
    found = parts_of(flow, units, _logits(trace, result))
    seen.layers, seen.parts = joined(layers, found, units)
    seen.inputs = links(flow, seen.layers, seen.parts)
    batch, seq, target = _lengths(args, kwargs)
    seen.streams = streams(seen.layers, seen.parts, seen.inputs, batch, seq, target)
    return seen


def _logits(trace: Trace, result: Any) -> Optional[int]:
    """The tensor that a loss would read: what the result calls so, or the one that it is."""
    if hasattr(result, "items"):
        for name in ("logits", "prediction_logits", "start_logits"):
            if isinstance(result.get(name), torch.Tensor):
                return trace.number(result[name])
        return None
    tensors = tensors_in(result)
    return trace.number(tensors[0]) if len(tensors) == 1 else None


def _lengths(args: tuple, kwargs: dict):
    """Batch, tokens of a sequence, and of a decoder's, by the integers that went in."""
    tensors = tensors_in((args, kwargs))
    ids = [tensor for tensor in tensors if not tensor.is_floating_point() and tensor.dim() == 2]
    batch = tensors[0].shape[0] if tensors[0].dim() else 1
    target = kwargs.get("decoder_input_ids")
    words = kwargs.get("input_ids", ids[0] if ids else None)
    if words is target:
        words = None
    seq = words.shape[1] if words is not None and words.dim() > 1 else 0
    if not seq and not ids and tensors[0].dim() == 3:
        seq = tensors[0].shape[1]
    return batch, seq, target.shape[1] if target is not None else 0
