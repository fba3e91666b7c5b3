"""Parts laid over the module tree: layers with operations, in order of registration."""

from __future__ import annotations

from collections.abc import Iterable

from ._export_attention import attentions
from ._export_experts import mixtures
from ._export_flow import Flow, within
from ._export_mlp import networks
from ._export_norm import norms
from ._export_part import Part
from ._export_recurrent import mixers
from ._export_single import convolutions, embeddings, projections, rotaries, tables
from ._export_tree import Layer


def parts_of(flow: Flow, units: dict[str, str], logits: int | None) -> list[Part]:
    """What devmap has operations for, the largest first: a step belongs to one part."""
    parts: list[Part] = []
    taken: set[int] = set()

    def take(found: list[Part]) -> None:
        for part in found:
            if part.steps & taken:
                continue
            parts.append(part)
            taken.update(part.steps)

    take(mixtures(flow, units))
    take(mixers(flow))
    take(attentions(flow, units))
    take(embeddings(flow))
    take(networks(flow, units, taken | set(flow.straight(logits)[-1:])))
    take(norms(flow, taken))
    take(convolutions(flow, taken))
    take(projections(flow, taken, logits))
    take(tables(flow, taken))
    take(rotaries(flow))
    return parts


def joined(
    layers: list[Layer], parts: list[Part], units: dict[str, str], modules: Iterable[str]
) -> tuple[list[Layer], dict[int, Part]]:
    """The layers of the tree with those of a part made one; and the part of each, by the layer's id."""
    holder: dict[str, Layer] = {}
    for layer in layers:
        for name, _ in layer.params:
            holder[_full(layer.name, name)] = layer
    place = {id(layer): float(index) for index, layer in enumerate(layers)}
    gone: set[int] = set()
    named: dict[str, Layer] = {layer.name: layer for layer in layers}
    out: list[tuple[float, Layer]] = []
    of: dict[int, Part] = {}
    for part in sorted(parts, key=lambda one: min(one.steps)):
        held: list[Layer] = []
        for name in sorted(part.params, key=lambda one: place[id(holder[one])] if one in holder else 0):
            if name in holder and holder[name] not in held and id(holder[name]) not in gone:
                held.append(holder[name])
        if part.op["kind"] == "rotary":
            held = [named[part.path]] if part.path in named else []
        if part.op["kind"] == "norm" and not part.params:
            layer = Layer(part.path, None, units.get(part.path, ""))
            out.append((_after(part.path, modules, layers, place), layer))
            of[id(layer)] = part
            continue
        inside = [layer for layer in held if within(layer.name, part.path) or layer.name == part.path]
        if len(inside) != len(held) or not held and part.op["kind"] != "rotary":
            _again(part, of)
            continue
        if held and all(id(one) in of for one in held):
            _again(part, of)
            continue
        if (
            len(held) == 1
            and held[0].name != part.path
            and len(held[0].params) > 0
            and part.op["kind"] in ("embedding", "linear", "head", "conv", "norm")
        ):
            of[id(held[0])] = part
            continue
        if len(held) == 1 and held[0].name == part.path:
            of[id(held[0])] = part
            continue
        own = named.get(part.path)
        if not part.path or not held or own is not None and own not in held and (id(own) in gone or id(own) in of):
            continue
        if any(other.name == part.path for _, other in out):
            continue
        if own is not None and own not in held:
            held.insert(0, own)
        layer = Layer(part.path, held[0].module, units.get(part.path, ""))
        for one in held:
            rest = one.name[len(part.path) :].lstrip(".")
            layer.params += [(_full(rest, name), tensor) for name, tensor in one.params]
            layer.saved |= one.saved
            layer.buffers += [(_full(rest, name), tensor) for name, tensor in one.buffers]
        gone.update(id(one) for one in held)
        out.append((min(place[id(one)] for one in held), layer))
        of[id(layer)] = part
    out += [(place[id(layer)], layer) for layer in layers if id(layer) not in gone]
    return [layer for _, layer in sorted(out, key=lambda one: one[0])], of


def _after(path: str, modules: Iterable[str], layers: list[Layer], place: dict[int, float]) -> float:
    """The place of a module without tensors: after the last layer that was registered before it."""
    order = {name: index for index, name in enumerate(modules)}
    before = [place[id(layer)] for layer in layers if order.get(layer.name, -1) < order[path] and layer.name in order]
    return max(before, default=-1.0) + 0.5


def _again(part: Part, of: dict[int, Part]) -> None:
    """A part that a part before is already: the same parameters run once more."""
    for other in of.values():
        if (
            other.path == part.path
            and other.op["kind"] == part.op["kind"]
            and other.params == part.params
            and part.params
        ):
            other.runs += 1
            other.steps |= part.steps


def _full(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
