"""What each layer reads: what it transforms, the residual that its result joins, an encoder's output."""

from __future__ import annotations

from ._export_flow import Flow
from ._export_part import Part
from ._export_rest import holder_of, plain_layers
from ._export_tree import Layer


def links(flow: Flow, layers: list[Layer], of: dict[int, Part]) -> tuple[dict[str, list[str]], dict[int, str | None]]:
    """Inputs of the layers that ran, by name; and of tensors the layer whose result they are."""
    owner: dict[int, str] = {}
    for layer in layers:
        part = of.get(id(layer))
        if part is not None:
            owner.update((at, layer.name) for at in part.steps if part.op["kind"] != "rotary")
    plain = plain_layers(layers, of)
    for at, step in enumerate(flow.steps):
        if at not in owner:
            name = holder_of(step.scope, plain)
            if name is not None:
                owner[at] = name
    order = {name: index for index, name in enumerate(_started(owner))}
    made: dict[int, str | None] = {}  # tensor to the layer whose result it is
    reads: dict[str, list[str]] = {name: [] for name in order}
    joins: dict[str, list[str]] = {name: [] for name in order}
    mains = {layer.name: flow.plain(of[id(layer)].main) for layer in layers if id(layer) in of}
    cross: dict[str, list[str]] = {}
    for at, step in enumerate(flow.steps):
        sources: list[str] = []
        for number in step.inputs:
            name = made.get(number)
            if name is not None and name not in sources:
                sources.append(name)
        mine = owner.get(at)
        if mine is not None:
            for number in step.inputs:
                name = made.get(number)
                if name is None or name == mine or order[name] > order[mine]:
                    continue
                into = reads if mine not in mains or flow.plain(number) == mains[mine] else cross
                if name not in into.setdefault(mine, []):
                    into[mine].append(name)
            made.update((number, mine) for number in step.outputs)
            continue
        if not sources:
            continue
        last = max(sources, key=order.__getitem__)
        for name in sources:
            if name != last and name not in joins[last]:
                joins[last].append(name)
        made.update((number, last) for number in step.outputs)
    parts = {layer.name: of[id(layer)] for layer in layers if id(layer) in of}
    out = {}
    for name in order:
        if not reads[name]:  # what it transforms was changed on its way by steps of its own
            reads[name] = cross.get(name, [])
        # A block that normalises after adding reads one tensor twice: as what it transforms, and as the residual.
        out[name] = reads[name][:1] + joins[name][:1]
        if name in plain:
            out[name] += [one for one in reads[name][1:] if one not in out[name]]
        elif parts[name].op.get("cross"):
            out[name] += [one for one in _keys(parts[name], made) if one is not None and one not in out[name]][:1]
    return out, made


def _keys(part: Part, made: dict[int, str | None]) -> list[str | None]:
    """The layers that keys and values of cross-attention are made of."""
    return [made.get(number) for number in part.more]


def _started(owner: dict[int, str]) -> list[str]:
    seen: list[str] = []
    known = set()
    for at in sorted(owner):
        if owner[at] not in known:
            known.add(owner[at])
            seen.append(owner[at])
    return seen
