"""The other operations among the calls of a forward, and the layers that they belong to."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import collections
import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from math import prod

import torch

from .attention import attentions, norms, result_of, style_of
from .flow import CONVOLUTIONS, SAME, Flow, Part, common, within
from .module import Layer

# What a network's activation is called.

# Names as Transformers' ACT2FN has them (activations.py), by the torch function.
_FUNCTIONS = {
    "silu": "silu",
    "relu": "relu",
    "relu_": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "mish": "mish",
    "relu6": "relu6",
    "leaky_relu": "leaky_relu",
    "elu": "elu",
    "selu": "selu",
    "hardswish": "hardswish",
    "softplus": "softplus",
    "celu": "celu",
    "hardtanh": "hardtanh",
    "logsigmoid": "logsigmoid",
    "hardsigmoid": "hardsigmoid",
    "softsign": "softsign",
}
# Those that are written in Python, by their class (torch calls them step by step).
_CLASSES = {
    "NewGELUActivation": "gelu_new",
    "FastGELUActivation": "gelu_fast",
    "QuickGELUActivation": "quick_gelu",
    "ReLUSquaredActivation": "relu2",
    "BloomGelu": "gelu_pytorch_tanh",
    "ClippedGELUActivation": "gelu_10",
    "LaplaceActivation": "laplace",
    "AccurateGELUActivation": "gelu_accurate",
    "XIELUActivation": "xielu",
    "MishActivation": "mish",
}


@dataclasses.dataclass
class Activation:
    name: str
    steps: set[int]


def activation_of(flow: Flow, steps: list[int]) -> Activation | None:
    """The activation among steps between two projections; None where none is known."""
    for at in steps:
        step = flow.steps[at]
        kind = type(flow.trace.modules.get(step.scope)).__name__
        if kind in _CLASSES:
            inside = {one for one in steps if flow.steps[one].scope == step.scope}
            return Activation(_CLASSES[kind], inside)
    for at in steps:
        step = flow.steps[at]
        if step.name == "gelu":
            tanh = step.keywords.get("approximate", step.arguments[1] if len(step.arguments) > 1 else "none") == "tanh"
            return Activation("gelu_pytorch_tanh" if tanh else "gelu", {at})
        if step.name == "relu" and _squared(flow, at):
            return Activation("relu2", {at, *_squared(flow, at)})
        if step.name in _FUNCTIONS and step.name != "sigmoid":
            return Activation(_FUNCTIONS[step.name], {at})
    swish = [at for at in steps if flow.steps[at].name == "sigmoid"]
    if len(swish) == 1:  # x · sigmoid(a·x) is a quick GELU, sigmoid(x) alone a gate
        scaled = flow.trace.maker.get(flow.main(flow.steps[swish[0]]))
        if scaled is not None and flow.steps[scaled].name in ("mul", "rmul") and scaled in steps:
            return Activation("quick_gelu", {swish[0], scaled})
        return Activation("sigmoid", {swish[0]})
    tanh = [at for at in steps if flow.steps[at].name == "tanh"]
    powers = [at for at in steps if flow.steps[at].name == "pow"]
    if tanh and powers:  # 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), written out
        return Activation("gelu_new", {at for at in steps if flow.steps[at].name not in SAME})
    return None


def _squared(flow: Flow, at: int) -> set[int]:
    return {one for one in flow.readers.get(flow.steps[at].outputs[0], ()) if flow.steps[one].name in ("square", "pow")}


# Feed-forward networks: two or three projections around an activation.

_BETWEEN = SAME | {"mul", "rmul"}


def networks(flow: Flow, units: dict[str, str], taken: set[int]) -> list[Part]:
    """Every projection that reads what an activation made of one projection of the same input, or of two."""
    parts: list[Part] = []
    used: set[int] = set()
    times = collections.Counter(map(flow.matrix, flow.steps))
    for down, step in enumerate(flow.steps):
        if down in taken or down in used or flow.matrix(step) is None:
            continue
        part = _part(flow, down, taken | used, units, times)
        if part is not None:
            parts.append(part)
            used |= part.steps
    return parts


def _part(flow: Flow, down: int, taken: set[int], units: dict[str, str], times: Mapping[str | None, int]) -> Part | None:
    linear = lambda at: flow.matrix(flow.steps[at]) is not None  # noqa: E731
    step = flow.steps[down]
    way = flow.back([flow.main(step)], lambda at: linear(at) or at in taken)
    ups = sorted(at for at in way if linear(at))
    if not 1 <= len(ups) <= 2 or way & taken or down in ups:
        return None
    matrices = [flow.matrix(flow.steps[at]) for at in (down, *ups)]
    if len(set(matrices)) < len(matrices) or len({times[one] for one in matrices}) > 1:
        return None  # a projection that is called on its own too
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


# Mixtures of experts: a router that chooses, and experts in one tensor or in a list.


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
            return _expert_part(flow, path, *sizes)
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


def _expert_part(flow: Flow, path: str, experts: int, hidden: int, dim: int, holder: torch.nn.Module) -> Part:
    steps = {at for at, step in enumerate(flow.steps) if within(step.scope, path) and at not in flow.trace.beside}
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
    if _router32(flow, path, steps, experts):
        op["fp32_routing"] = True
    if _cast_weights(flow, steps, op["top_k"]):
        op["cast_weights"] = True
    biased = any(name.endswith("bias") for name, _ in holder.named_parameters())
    if biased and any(flow.steps[at].name in ("clamp", "clamp_") for at in steps):
        op["clamped"] = True
    for at in sorted(steps):
        if flow.steps[at].name in ("silu", "gelu", "relu"):
            op["activation"] = flow.steps[at].name
            break
        if flow.steps[at].name == "sigmoid" and within(flow.steps[at].scope, _path(flow, holder)):
            op["activation"] = "silu"  # x · sigmoid(a x)
            break
    params = {name for names in flow.trace.parameters.values() for name in names if within(name, path)} - flow.trace.added
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


def _router32(flow: Flow, path: str, steps: set[int], experts: int) -> bool:
    """Whether the router's product is in fp32 while other weights of the module are not. Transformers 5.24 keeps some
    routers' weights in fp32 (_keep_in_fp32_modules_strict)."""
    inside = [flow.tensor(number) for number, names in flow.trace.parameters.items() if within(names[0], path)]
    narrow = any(tensor.is_floating_point() and tensor.element_size() < 4 for tensor in inside)
    for at in sorted(steps):
        step = flow.steps[at]
        if flow.matrix(step) is not None and flow.width_out(step) == experts:
            return narrow and flow.tensor(step.outputs[0]).dtype == torch.float32
    return False


def _cast_weights(flow: Flow, steps: set[int], top_k: int) -> bool:
    """Whether a token's weights for its experts have 16 bits: the last tensor of top_k columns that the router makes."""
    last = None
    for at in sorted(steps):
        for number in flow.steps[at].outputs:
            tensor = flow.tensor(number)
            if tensor.is_floating_point() and tensor.dim() == 2 and tensor.shape[-1] == top_k:
                last = tensor
    return last is not None and last.element_size() < 4


# Selective state-space mixers, recognised by the parameters that their recurrence has (Gu and Dao 2023, §3).


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
        steps = {at for at, step in enumerate(flow.steps) if within(step.scope, path) and at not in flow.trace.beside}
        calls = [call for call in flow.trace.calls if call.path == path and call.inputs]
        if not calls:
            continue
        params = {name for names in flow.trace.parameters.values() for name in names if within(name, path)} - flow.trace.added
        shape = flow.shape(calls[0].inputs[0])
        parts.append(
            Part(path, op, steps, params, calls[0].inputs[0], tokens=shape[0] * (shape[1] if len(shape) > 2 else 1))
        )
    return parts


# Layers of one product or one table: embeddings, heads, projections, convolutions; and cosines of positions.


def embeddings(flow: Flow) -> list[Part]:
    """Tables that rows are looked up in."""
    parts = []
    for at, step in enumerate(flow.steps):
        names = flow.params(step)
        if step.name not in ("embedding", "getitem", "index_select") or not names or len(step.inputs) < 2:
            continue
        table = next(number for number in step.inputs if flow.weight(number))
        index = next((number for number in step.inputs if number != table), step.inputs[0])
        rows, width = flow.whole(table)[-2:]
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
        rows = next(flow.whole(number) for number in step.inputs if flow.weight(number))[:-1]
        op = {"kind": "embedding", "vocab": prod(rows), "dim": table[-1]}
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
            elif any(flow.steps[one].name in ("mul", "rmul", "div", "truediv", "add", "radd") for one in steps):
                op["scaled"] = True
            if _own_loss(flow):
                op["own_type"] = True
        else:
            op = {"kind": "linear", "in": flow.width_in(step), "out": flow.width_out(step)}
            _activated(flow, step, op, steps)
        parts.append(Part(step.scope, op, steps, set(flow.params(step)), main, tokens=rows))
    return parts


def _own_loss(flow: Flow) -> bool:
    """Whether the model's forward calls torch's loss, in the logits' type (modeling_bert.py). Transformers' own casts
    them to fp32 (loss_utils.py)."""
    forward = inspect.unwrap(type(flow.trace.modules[""]).forward)
    return "CrossEntropyLoss" in getattr(getattr(forward, "__code__", None), "co_names", ())


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


# Parts laid over the module tree: layers with operations, in order of registration.


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
    several: set[int] = set()
    parts = [part for part in parts if all(size >= 0 for size in part.op.values() if isinstance(size, int))]  # an adapter's shapes
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
            if len(held) == 1 and part.op["kind"] in ("linear", "head", "embedding", "conv") and not part.params <= of[id(held[0])].params:
                several.add(id(held[0]))  # a list of matrices is no operation of one
            continue
        if (
            len(held) == 1
            and held[0].name != part.path
            and len(held[0].params) > 0
            and part.op["kind"] in ("embedding", "linear", "head", "conv", "norm")
            or len(held) == 1
            and held[0].name == part.path
        ):
            of[id(held[0])] = part
            if part.op["kind"] == "linear" and _matrices(held) > 2 * part.op["in"] * part.op["out"]:
                several.add(id(held[0]))  # a weight that is made of several, as LoHa's
            continue
        own = named.get(part.path)
        if not part.path or not held or own is not None and own not in held and (id(own) in gone or id(own) in of):
            continue
        if any(other.name == part.path for _, other in out) or len({one.unit for one in held}) > 1:
            continue
        if part.op["kind"] == "linear" and _matrices(held) != part.op["in"] * part.op["out"]:  # a weight that is made of several, as LoHa's
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
    for one in several:
        of[one] = dataclasses.replace(of[one], op={"kind": "parameter"})
    return [layer for _, layer in sorted(out, key=lambda one: one[0])], of


def _matrices(held: list[Layer]) -> int:
    """Elements of matrices."""
    return sum(one.numel() for layer in held for _, one in layer.params if one.dim() > 1)


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
