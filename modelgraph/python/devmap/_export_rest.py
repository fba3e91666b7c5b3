"""What devmap has no operation for: the bytes that torch keeps for it, as declared costs."""

from __future__ import annotations

import dataclasses
from math import prod

from ._export_flow import SAME, Flow
from ._export_part import Part
from ._export_trace import storage_of
from ._export_tree import Layer

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
            sizes[key] = flow.tensor(number).untyped_storage().nbytes()
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
