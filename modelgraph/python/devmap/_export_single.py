"""Layers of one product or one table: embeddings, heads, projections, convolutions; and cosines of positions."""

from __future__ import annotations

from math import prod

from ._export_activation import activation_of
from ._export_flow import CONVOLUTIONS, Flow
from ._export_part import Part


def embeddings(flow: Flow) -> list[Part]:
    """Tables that rows are looked up in."""
    parts = []
    for at, step in enumerate(flow.steps):
        names = flow.params(step)
        if step.name not in ("embedding", "getitem", "index_select") or not names or len(step.inputs) < 2:
            continue
        table = next(number for number in step.inputs if flow.weight(number))
        index = next((number for number in step.inputs if number != table), step.inputs[0])
        rows, width = flow.shape(table)[-2:]
        op = {"kind": "embedding", "vocab": rows, "dim": width}
        steps = {at}
        for reader in flow.readers.get(step.outputs[0], ()):
            after = flow.steps[reader]
            if after.name in ("mul", "rmul") and all(
                number == step.outputs[0] or prod(flow.shape(number)) == 1 for number in after.inputs
            ):
                op["scaled"] = True
                steps.add(reader)
        shape = flow.shape(index)
        parts.append(
            Part(step.scope, op, steps, {names[0]}, index, tokens=prod(shape), shared=len(shape) < 2 or shape[0] == 1)
        )
    return parts


def tables(flow: Flow, taken: set[int]) -> list[Part]:
    """Rows of a parameter that are added to the stream one by one: positions of a tower, a class token."""
    parts = []
    for at, step in enumerate(flow.steps):
        if at in taken or step.name not in ("add", "radd", "iadd") or len(flow.data(step)) != 1:
            continue
        names, main = flow.params(step), flow.data(step)[0]
        table = next((flow.shape(number) for number in step.inputs if flow.weight(number)), [])
        result = flow.shape(step.outputs[0])
        if (
            len(names) != 1
            or len(table) < 2
            or len(result) < 3
            or table[-1] != result[-1]
            or prod(table[:-1]) != prod(result[1:-1])
        ):
            continue
        joined = {
            one
            for one in range(at)
            if flow.steps[one].scope == step.scope and flow.steps[one].name == "cat" and step.scope
        }
        more = {name for one in joined for name in flow.params(flow.steps[one])}
        op = {"kind": "embedding", "vocab": prod(table[:-1]), "dim": table[-1]}
        parts.append(Part(step.scope, op, {at, *joined}, {names[0], *more}, main, tokens=prod(result[:-1])))
    return parts


def projections(flow: Flow, taken: set[int], logits: int | None) -> list[Part]:
    """Linear layers that are in nothing larger; the one that makes the logits is the head."""
    parts = []
    way = flow.straight(logits)
    for at, step in enumerate(flow.steps):
        name = flow.matrix(step)
        if at in taken or name is None:
            continue
        main, rows = flow.main(step), prod(flow.shape(flow.main(step))[:-1])
        steps = {at}
        if way and at == way[-1]:
            op = {"kind": "head", "dim": flow.width_in(step), "vocab": flow.width_out(step)}
            steps |= set(way)
            if any(flow.steps[one].name == "tanh" for one in steps):
                op["soft_cap"] = True
        else:
            op = {"kind": "linear", "in": flow.width_in(step), "out": flow.width_out(step)}
            _activated(flow, step, op, steps)
        parts.append(Part(step.scope, op, steps, set(flow.params(step)), main, tokens=rows))
    return parts


def convolutions(flow: Flow, taken: set[int]) -> list[Part]:
    """Convolutions. Positions of the input for each of the output are the stride, whether or not some are read twice:
    it says how much is kept for the weight's gradient. Where that is no whole number (a convolution that is transposed,
    or at an edge without padding) torch's bytes are declared instead. What an activation behind it keeps is declared: a
    convolution that reads its result counts that already."""
    parts = []
    for at, step in enumerate(flow.steps):
        if step.name not in CONVOLUTIONS or at in taken or not flow.params(step):
            continue
        kernels = (
            flow.tensor(number) for number in step.inputs if flow.weight(number) and flow.tensor(number).dim() > 1
        )
        kernel = next(kernels, None)
        if kernel is None:  # made of parameters: weight and spectral norms
            continue
        result = flow.shape(step.outputs[0])
        main = flow.main(step)
        channels = flow.shape(main)[1] if len(flow.shape(main)) == len(result) else flow.shape(main)[0]
        positions = prod(result) // max(1, result[1])
        op = {"kind": "conv", "in": channels, "out": result[1], "kernel": prod(kernel.shape[2:])}
        read = prod(flow.shape(main)) // max(1, channels)
        if not positions or read % positions:
            continue
        if read > positions:
            op["stride"] = read // positions
        parts.append(Part(step.scope, op, {at}, set(flow.params(step)), main, tokens=positions))
    return parts


def _activated(flow: Flow, step, op: dict, steps: set[int]) -> None:
    """An activation that alone reads the result joins the layer."""
    number = step.outputs[0]
    readers = flow.readers_of(number)
    if not readers:
        return
    near = [
        one
        for one in range(readers[0], min(readers[0] + 12, len(flow.steps)))
        if flow.steps[one].scope == flow.steps[readers[0]].scope
    ]
    found = activation_of(flow, near)
    if found is not None and readers[0] in found.steps and found.name != "sigmoid":
        op["activation"] = found.name
        steps |= found.steps


def rotaries(flow: Flow) -> list[Part]:
    """Modules without parameters that make cosines and sines."""
    parts = []
    for call in flow.trace.calls:
        own = [at for at in range(call.first, call.end) if flow.steps[at].scope == call.path]
        names = {flow.steps[at].name for at in own}
        module = flow.trace.modules.get(call.path)
        if (
            not ({"cos", "sin"} <= names or "polar" in names)
            or module is None
            or any(True for _ in module.parameters())
            or len(own) != call.end - call.first
        ):
            continue
        width = flow.shape(call.outputs[0])[-1] * (2 if "polar" in names else 1) if call.outputs else 0
        frequencies = [one.numel() for one in module.buffers() if one.dim() == 1]
        width = max([width] + [2 * count for count in frequencies if 2 * count == 2 * width])
        parts.append(Part(call.path, {"kind": "rotary", "head_dim": width}, set(own), set(), -1))
    return parts
