"""What one forward shows of a module."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Mapping
from math import prod
from typing import Any

import torch

from .. import binary
from ..errors import DevmapError
from .adapters import set_apart
from .flow import Flow, Part
from .forward import Trace, prepare, reason, run, takes_labels, tensors_in, usual
from .memory import OWN_CODE, Bytes, declared, holder_of, plain_layers, resized, rest_of, sizes
from .module import FORMAT, Layer, copy_of, entry, remakes, ties_of
from .operations import joined, parts_of
from .quantised import packed as packed_in, stored
from .stages import in_order, staged

# What each layer reads: what it transforms, the residual that its result joins, an encoder's output.


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
            out[name] += [one for one in _keys(parts[name], made) if one not in (None, name, *out[name])][:1]
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


# Which tokens a layer works on, by the rows that it sees.


def streams(layers: list[Layer], of: dict[int, Part], inputs: dict[str, list[str]], rows: dict[str, int],
            batch: int, seq: int, target: int) -> dict[str, dict | None]:  # fmt: skip
    """The stream of every layer with an operation; None is the text's."""
    out: dict[str, dict | None] = {name: _of(_share(count, batch * seq), batch, seq, target) for name, count in rows.items()}
    for layer in layers:
        part = of.get(id(layer))
        if part is None or part.op["kind"] in ("rotary",):
            continue
        out[layer.name] = _of(part.tokens * (batch if part.shared else 1), batch, seq, target)
    for layer in layers:
        part = of.get(id(layer))
        if part is None or layer.name not in out:
            continue
        kind = part.op["kind"]
        before = [name for name in inputs.get(layer.name, []) if name in out]
        if part.tokens == batch and kind in ("linear", "head"):
            part.op["pooled"] = True
            out[layer.name] = out[before[0]] if before else None
        if kind == "conv":
            _rate(layer.name, part, out, inputs)
    return out


def _share(rows: int, tokens: int) -> int:
    """Rows of what each token has several of (a norm of a width for each layer) are the tokens'."""
    return tokens if tokens and rows % tokens == 0 else rows


def _of(tokens: int, batch: int, seq: int, target: int) -> dict | None:
    if seq and tokens == batch * seq:
        return None
    if target and tokens == batch * target:
        return {"kind": "target"}
    if tokens <= batch:
        return None
    return {"kind": "fixed", "tokens": tokens // batch if tokens % batch == 0 else tokens}


def _rate(name: str, part: Part, out: dict[str, dict | None], inputs: dict[str, list[str]]) -> None:
    """A convolution that runs at a multiple of the rate of what reads it."""
    mine = out[name]
    readers = [out[one] for one, sources in inputs.items() if name in sources and one in out]
    if not mine or not readers or not readers[0] or "tokens" not in mine or "tokens" not in readers[0]:
        return
    ratio, rest = divmod(mine["tokens"], readers[0]["tokens"])
    if rest == 0 and ratio > 1:
        part.op["token_ratio"] = ratio
        out[name] = dict(readers[0])


def lengths(args: tuple, kwargs: dict) -> tuple[int, int, int]:
    """Batch, tokens of a sequence, and of a decoder's, by what went in: integers of two sides are tokens, else a first
    tensor of three sides is a sequence of vectors. 0: there is none."""
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


# What is to be said of a module: what one forward did not show, and what model.json has no field for.

STOPPED = "the forward stopped before its end"
FROZEN = "what a model.json calls frozen counts under --runtime jax and where the memory of a step was followed)"
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def of_module(module: torch.nn.Module) -> list[str]:
    """What can be seen without running it."""
    said: list[str] = []
    frozen = [name for name, one in module.named_parameters() if not one.requires_grad and one.is_floating_point()]
    total = sum(1 for _ in module.parameters())
    if frozen:
        said.append(
            f"{len(frozen)} of {total} parameters take no gradient ({_first(frozen)}): a plan for training counts "
            f"gradients and optimizer states of all, an upper bound (lora_rank plans adapters on the base model; {FROZEN}"
        )
    packed = [name for name, one in module.named_parameters() if stored(one)[0][1].dtype not in _FLOATS and not one.dtype.is_complex]
    packed += [f"{path}.{packed_in(part)}" for path, part in module.named_modules() if packed_in(part) in part._buffers]
    if packed:
        said.append(
            f"{len(packed)} parameters are stored quantised ({_first(packed)}): their bytes are counted as stored, "
            "what their layers unpack is not"
        )
    return said


def hooks_of(module: torch.nn.Module) -> list[str]:
    """The modules that have hooks on their forward."""
    return [
        path or "the module"
        for path, part in module.named_modules()
        if part._forward_hooks or any(not remakes(hook) for hook in part._forward_pre_hooks.values())
    ]


def of_trace(trace: Trace, twin: torch.nn.Module, before: set[str]) -> list[str]:
    """What the forward did, and did not."""
    said: list[str] = []
    for path, why in trace.failed.items():
        said.append(
            f"{path}: its forward could not be followed ({why}): it is known by its modules alone, its result taken to "
            "be like what goes in"
        )
    for path, line in trace.guessed.items():
        if not line.startswith("masking_utils.py"):
            said.append(
                f"{path or 'the module'}: {line} asks whether values that depend on the data are so: the way that "
                f"holds was followed, the other not seen (devmap.export follows it with values={{{line!r}: False}})"
            )
    for line, name in trace.counted.items():
        said.append(f"{line}: how many elements {name} finds depends on the data: all were taken, the most that it can be")
    read = {name for _, names, _ in trace.events for name in names}
    called = {call.path for call in trace.calls}
    unread = []
    for names in trace.parameters.values():
        holder = names[0].rpartition(".")[0]
        name = names[0] if holder in called else holder or names[0]
        if names[0] not in read and name not in unread:
            unread.append(name)
    if unread:
        said.append(f"{_names(unread)}: not called in this forward: known by weights alone")
    made = [name for name, _ in (*twin.named_parameters(), *twin.named_buffers()) if name not in before]
    registered = {id(one) for one in twin.parameters()}
    for number, line in trace.strays.items():
        if id(trace.tensors[number]) not in registered:
            said.append(f"{line} reads a parameter {list(trace.tensors[number].shape)} that the forward makes: no optimizer and no checkpoint has it; make it in __init__")
    if made:
        said.append(f"{_names(made)}: made in the forward: a device map made before has no place for it")
    return said


def in_turn(trace: Trace, layers: list[Layer]) -> list[str]:
    """Parts that a forward calls one after the other and then again: a, b, a, b. Stages run once each."""
    part_of = {layer.name: layer.unit or layer.name for layer in layers if layer.params}
    order: list[str] = []
    for call in sorted(trace.calls, key=lambda call: (call.first, call.end)):
        part = part_of.get(call.path)
        if part is not None and order[-1:] != [part]:
            order.append(part)
    ends = {part: at for at, part in enumerate(order)}
    begins = {part: at for at, part in reversed(list(enumerate(order)))}
    twice = [part for part in dict.fromkeys(order) if order.count(part) > 1]
    for one in twice:
        for other in twice:
            if begins[one] < begins[other] < ends[one] < ends[other]:
                return [f"{one} and {other} are called in turn: each counts once, and stages of a pipeline do not hold them apart"]
    return []


def repeated(trace: Trace, layers: list[Layer]) -> list[str]:
    """Parts that are called with one tensor twice. A hook copies each argument, and attention asks whether two are one tensor
    (torch/nn/functional.py, _in_projection_packed)."""
    parts = {layer.unit or layer.name for layer in layers if layer.params}
    twice = {call.path: None for call in trace.calls if call.path in parts and len(set(call.inputs)) < len(call.inputs)}
    said = "called with one tensor twice: if another GPU made it, hooks pass two copies, which peaks on several GPUs do not count"
    return [f"{_names(list(twice))}: {said}"] if twice else []


def _first(names: list[str]) -> str:
    return names[0] + (", …" if len(names) > 1 else "")


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


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
    size: dict[str, Any] = dataclasses.field(default_factory=dict)  # of the forward that ran
    labels: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)  # of a trainer's loss
    staged: list[dict[str, Any]] = dataclasses.field(default_factory=list)
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
    logits: list[int]  # their sides


def look(module: torch.nn.Module, layers: list[Layer], units: dict[str, str], inputs: Any, answers: Mapping[str, Any]) -> Seen:
    """Runs a copy of the module and finds what devmap has operations for, and the rest. answers are to questions about data, by line."""
    given = inputs if inputs is not None else usual(module)
    if given is None:
        return Seen(layers, warnings=["inputs was not given: no forward was run, so that only weights are known"])
    args, kwargs, values = prepare(given)
    values.update(answers)
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
    hooked = hooks_of(module)
    first = _once(module, layers, units, args, kwargs, values, bool(hooked))
    if hooked and first.fault is not None:
        first = _once(module, layers, units, args, kwargs, values)
        first.warnings.append(f"hooks of {_names(hooked)} were not run for what each layer does: what they keep or change there was not seen")
        hooked = []
    size = lengths(args, kwargs)
    if usual(module) is None:  # readers of configs have the order of the module tree
        first.layers = in_order(first.layers, first.trace.events)
    seen = Seen(first.layers, True, first.parts, first.inputs, warnings=first.warnings)
    seen.size = {"batch": size[0], "precision": _precision(first), **{name: one for name, one in zip(("seq", "target_seq"), size[1:]) if one}}
    rows = [size[0], size[2] or size[1]]
    if inputs is None and takes_labels(module) and len(first.logits) == 3 and first.logits[:2] == rows:
        seen.labels = {"labels": torch.zeros(rows, dtype=torch.int64)}
    seen.warnings += in_turn(first.trace, layers) + repeated(first.trace, layers)
    seen.staged = staged(first.layers, first.trace.events, ties_of(module) if usual(module) is None else ())
    if first.fault is not None:
        seen.warnings.append(
            f"{STOPPED} ({first.fault}): what came after is known by its weights alone"
        )
    seen.streams = streams(seen.layers, seen.parts, seen.inputs, first.rows, *size)
    if first.rest:
        _declare(seen, first, size, lambda new: _again(module, layers, units, args, kwargs, values, size, new, bool(hooked)))
    return seen


def _once(module, layers: list[Layer], units: dict[str, str], args: tuple, kwargs: dict, values: dict, hooked: bool = False) -> Look:
    twin = copy_of(module, hooked)
    before = {name for name, _ in (*twin.named_parameters(), *twin.named_buffers())}
    trace, result, fault = run(twin, args, kwargs, values)
    set_apart(trace)
    flow = Flow(trace)
    logits = _logits(flow, result)
    out, parts = joined(layers, parts_of(flow, units, logits), units, trace.modules)
    _agreed(out, parts)
    inputs, made = links(flow, out, parts)
    rest = rest_of(flow, out, parts, made)
    return Look(trace, out, parts, inputs, rest, _rows(trace, rest), fault, of_trace(trace, twin, before), [] if logits is None else flow.shape(logits))


def _agreed(layers: list[Layer], parts: dict[int, Part]) -> None:
    """Drops operations that the program refuses, since their layers have other weights too (an indexer, relative positions)."""
    mine = [layer for layer in layers if id(layer) in parts and layer.params]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        while mine:
            said = [{"name": layer.name, "op": parts[id(layer)].op, "params": [entry(name, one) for name, one in layer.params]} for layer in mine]
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"format_version": FORMAT, "name": "layers", "layers": said}, file)
            try:
                binary.run(["inspect", path])
                return
            except DevmapError as error:
                place = re.search(r"layers\[(\d+)\].*op and params are of different sizes", str(error))
                if place is None:  # what else is wrong, the model's own reader says
                    return
                del parts[id(mine.pop(int(place[1])))]


def _rows(trace: Trace, rest: dict[str, Bytes]) -> dict[str, int]:
    """Rows of what layers without an operation are called with."""
    out: dict[str, int] = {}
    for call in trace.calls:
        if call.path in rest and call.path not in out:
            shapes = [trace.tensors[number].shape for number in call.inputs if trace.tensors[number].dim() > 1]
            if shapes:
                out[call.path] = prod(shapes[0]) // shapes[0][_width_at(shapes[0], trace.modules[call.path])]
    return out


def _width_at(shape: torch.Size, module: torch.nn.Module) -> int:
    """Which side of a tensor is the width: the last, of pictures the channels."""
    widths = {tensor.shape[0] for tensor in (*module.parameters(False), *module.buffers(False)) if tensor.dim() == 1}
    widths = {getattr(module, "in_channels", None)} if hasattr(module, "in_channels") else widths
    return 1 if len(shape) == 4 and shape[1] in widths and shape[-1] not in widths else -1


def _again(module, layers, units, args, kwargs, values, size, new, hooked) -> dict[str, Bytes]:
    """The bytes of the same forward at another size; none where it does not run at that."""
    known = dict(values)
    other_args, other_kwargs = resized(args, size, new, known), resized(kwargs, size, new, known)
    found = _once(module, layers, units, other_args, other_kwargs, known, hooked)
    return found.rest if found.fault is None else {}


def _declare(seen: Seen, first: Look, size: tuple[int, int, int], again) -> None:
    """Declared costs of what has no operation, in the layers' order."""
    batch, seq, target = size
    points = sizes(batch, seq, target)
    runs = [first.rest] + [again(point) for point in points[1:]]
    seen.taken = seen.size
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
