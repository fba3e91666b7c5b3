"""The memory of a step layer by layer: births and deaths of its storages, cut where another layer begins.

A step runs on a GPU that is not there (../measure). For each layer, the tape has what it keeps from its forward to its
backward, and the most that exists at once while it runs, in all layers together. The cost model subtracts what earlier
layers keep, so that figures of one GPU are those of the step, whatever the order of layers.
"""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value, override"

from __future__ import annotations

import bisect
import contextlib
import functools
import gc
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.checkpoint import checkpoint

from .. import binary, verified
from ..errors import DevmapError
from ..measure import convolutions, fake_copies, hidden, placed
from ..measure.calls import Calls
from ..measure.events import WORKSPACE, Ledger
from ..measure.machine import Machine, pretended
from ..measure.places import Place, Places, line_of_error
from ..measure.values import Values
from . import memory
from .forward import prepare, usual
from .module import Layer
from .seen import lengths

STATIC, FORWARD, BACKWARD, AFTER = range(4)
TERMS = (lambda b, s: 1, lambda b, s: b, lambda b, s: b * s, lambda b, s: b * s * s, lambda b, s: s, lambda b, s: s * s)
_NOWHERE = Place("", "", "", "")


class _Windows(Places):
    """The layer that runs: the one whose module was entered last; in backward that of autograd's node."""

    def __init__(self) -> None:
        super().__init__()
        self.begin(torch.nn.Module(), {})

    def begin(self, module: torch.nn.Module, units: Mapping[str, str]) -> None:
        self.layers = units
        self.paths = {id(part): path for path, part in module.named_modules()}
        first = next(iter(units), "")  # code that runs before any layer is called has its first tensors
        self.begins: list[tuple[int, str]] = [(0, first)]  # sequence numbers of autograd at which another layer began
        self.now, self.entered, self.phase = first, [], STATIC
        self.returned = 1 << 62  # the sequence number of autograd at which the model returned: later nodes are the caller's

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        path = self.paths.get(id(module), "")
        self.entered.append(path)
        while path and path not in self.layers:
            path = path.rpartition(".")[0]
        if path and path != self.now:
            self.now = path
            self.begins.append((torch.autograd._get_sequence_nr(), path))

    def _leave(self, *_: Any) -> None:
        self.entered.pop()

    def outside(self) -> bool:
        """Whether the code of a forward runs that is not of the layer's unit but after it, of a module around it."""
        return self.phase == FORWARD and self.now in self.layers and self.layers[self.now] not in self.entered

    def here(self, operation: str) -> Place:
        return _NOWHERE._replace(operation=operation)

    def label(self) -> str:
        node = torch._C._current_autograd_node() if self.phase == BACKWARD and not self.entered else None
        if node is not None:
            at = bisect.bisect_right(self.begins, (node._sequence_nr(), "\uffff")) - 1
            if node._sequence_nr() < 1 << 62 and at >= 0:  # gradients are added up in the window of the node before
                self.now = self.begins[at][1]
        return self.now


class _Recorder(Ledger):
    """Storages with the layer and the phase of their birth and death."""

    even = True

    def __init__(self, machine: Machine, values: Values, windows: _Windows) -> None:
        super().__init__(machine, values, windows)
        self.windows, self.unasked = windows, False
        self.idle: list[str] | None = None  # parameters that the first backward gave no gradient
        self.begin(torch.nn.Module(), {})

    def begin(self, module: torch.nn.Module, units: Mapping[str, str]) -> None:
        """A new step. units are those of the layers by name."""
        self.log, self.births, self.sizes, self.alive, self.spaces, self.doubts = [], [], [], {}, set(), {}
        self.now, self.most, self.homes = [0], [0], {}
        self.events: list[tuple[int, str, int]] = []
        self.after: list[bool] = []  # of events, whether code after the layer's unit ran
        self.products: set[str] = set()
        self.biased: list[str] = []  # layers with products that add a bias, which have a workspace more
        self.inside: dict[int, str] = {}  # memory inside kernels, by the storage
        self.ruled_by: dict[int, tuple[str, tuple[int, ...]]] = {}  # a kernel's rule and its sizes
        self.nodes: dict[int, int] = {}  # by the storage, the node of autograd that made it
        self.savers: dict[int, list[str]] = {}  # by the storage, the layers whose backward needs it
        self.readers: dict[int, dict[str, bool]] = {}  # by the storage, the layers whose operations read it, and whether code after their units does
        self.sums: list[tuple[int, set[int]]] = []  # of gradients: autograd makes them where the tensor was made
        self.callers: set[int] = set()  # storages that the caller made: its loss, and the gradient of the results
        self.windows.begin(module, units)

    def born(self, size: int, device: int, place: Place, inside: bool = False) -> int:
        number = super().born(size, device, place, inside)
        if inside:
            self.inside[number] = place.operation
        if isinstance(size, hidden.Taken):
            self.ruled_by[number] = size.rule, size.sizes
        self.events.append((number, self.windows.label(), self.windows.phase))
        self.after.append(self.windows.outside())
        node = torch._C._current_autograd_node() if self.windows.phase == BACKWARD else None
        self.nodes[number] = node._sequence_nr() if node is not None else -1
        if self.windows.returned <= (torch.autograd._get_sequence_nr() if self.windows.phase == FORWARD else self.nodes[number]) < 1 << 62:
            self.callers.add(number)
        return number

    def die(self, number: int) -> None:
        super().die(number)
        self.events.append((-number, self.windows.label(), self.windows.phase))
        self.after.append(self.windows.outside())

    def pack(self, tensor: Any) -> Any:
        """Notes that autograd saves a tensor. It keeps an alias: with hooks the tensor itself would refer to its node."""
        number = self.refs.get(tensor.untyped_storage()._cdata, (None, 0))[1]
        if number and self.windows.phase == FORWARD:
            found, label = self.savers.setdefault(number, []), self.windows.label()
            if label not in found:
                found.append(label)
        return tensor.detach()

    def _convolved(self, *about: Any) -> bool:
        known = super()._convolved(*about)
        self.unasked |= not known
        return known

    def _workspace(self, name: str, args: Any, index: int) -> None:
        self.products.add(self.windows.label())
        if name == "addmm" and args[0].dim() == 1 and self.windows.label() not in self.biased:
            self.biased.append(self.windows.label())
        super()._workspace(name, args, index)

    def _on_gpu(self, func: Any, name: str, types: Any, args: Any, kwargs: Any, index: int) -> Any:
        label, read = self.windows.label(), _storages(self, (args, kwargs))
        out = super()._on_gpu(func, name, types, args, kwargs, index)
        if name == "add" and self.windows.phase == BACKWARD:
            self.sums += [(made, read) for made in _storages(self, out)]
        else:
            for number in read:
                found = self.readers.setdefault(number, {})
                found[label] = found.get(label, False) or self.windows.outside()
        if name not in placed._RANDOM and not name.endswith("_"):
            placed._follow(func, args, kwargs, out)
        return out


class Ran(NamedTuple):
    """A step: the sizes of storages and their kinds, events, and labels in the order of their first windows."""

    sizes: list[int]
    blocks: list[int]  # as PyTorch's allocator cuts them in a second step
    rests: dict[str, int]  # what the blocks of parameters and of AdamW's states have above these, by parameter
    kinds: list[str]  # "", "static", "input", "output", "grad"
    nodes: list[int]
    savers: list[list[str]]
    readers: list[dict[str, bool]]
    events: list[tuple[int, str, int]]
    after: list[bool]
    moved: dict[int, str]  # sums of gradients, by the layer whose GPU has them
    summed: set[int]  # gradients of parameters that another call adds to
    callers: set[int]
    inside: dict[int, str]
    ruled_by: dict[int, tuple[str, tuple[int, ...]]]
    products: list[str]
    biased: list[str]
    failed: str
    trains: bool
    dropped: set[int]  # storages of results that the caller dropped before the backward


def _storages(recorder: Ledger, value: Any) -> set[int]:
    tensors = [one for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
    return {recorder.refs[key][1] for key in (one.untyped_storage()._cdata for one in tensors) if key in recorder.refs}


class _Answers(placed._Guesses):
    """Answers of the user before guesses."""

    def count(self, operation: str, tensor: Any, line: str) -> int:
        value = self._given(line, tensor)
        return super().count(operation, tensor, line) if value is None else max(0, int(value))


@contextlib.contextmanager
def _session(alone: bool, given: dict) -> Iterator[_Recorder]:
    """A recorder, with torch as it is on a GPU."""
    machine, windows = Machine.of(1), _Windows()
    machine.name = next(iter(convolutions.DEVICES))  # the GPU whose convolutions cuDNN plans
    recorder = _Recorder(machine, _Answers(given), windows)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        disabled = logging.root.manager.disable
        logging.disable(logging.ERROR)
        stack.callback(logging.disable, disabled)
        stack.enter_context(pretended(machine, recorder, Calls(recorder).swaps() + placed._scripts(), alone))
        stack.enter_context(windows.following())
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield recorder


def step(recorder: _Recorder, module: torch.nn.Module, layers: Mapping[str, str], units: list[str], args: tuple, kwargs: dict, mode: str, drops: bool = False, around: Any = contextlib.nullcontext) -> Ran:
    """One forward of a copy, and in training a backward of the loss that it returns, else of the mean of its results.
    drops: the caller keeps the loss alone. around makes the context of the forward, such as autocast."""
    twin, args, kwargs = fake_copies(recorder, (module, args, dict(kwargs)))
    twin.train(mode != "infer")
    recorder.begin(twin, layers)
    windows = recorder.windows
    if mode == "recompute":
        _checkpointed(twin, units)
    failed, result, dropped = "", None, set()
    with recorder, placed._Functions(recorder):
        twin.to("cuda:0")
        kinds = dict.fromkeys(range(1, len(recorder.sizes) + 1), "static")
        args, kwargs = tree_map(lambda one: one.to("cuda:0") if isinstance(one, torch.Tensor) else one, (args, kwargs))
        kinds.update((number, "input") for number in range(len(kinds) + 1, len(recorder.sizes) + 1))
        windows.phase = FORWARD
        try:
            with torch.set_grad_enabled(mode != "infer"), torch.autograd.graph.saved_tensors_hooks(recorder.pack, lambda tensor: tensor):
                with around():
                    result = twin(*args, **kwargs)
                    result = list(result) if isinstance(result, Iterator) else result  # a generator runs as it is read
                    windows.returned = torch.autograd._get_sequence_nr()
                    loss = _loss(result) if mode != "infer" else None
                if mode != "infer" and loss is None and any(one.requires_grad for one in twin.parameters()):
                    failed = f"no tensor of its result, a {type(result).__name__}, takes a gradient, so that no backward runs and peaks are lower bounds"
                if drops:
                    dropped, result = _storages(recorder, placed.results(result)), None
                windows.phase = BACKWARD
                if loss is not None:
                    loss.backward()
                del loss
        except DevmapError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a forward raises
            failed = f"{line_of_error(error) or 'the forward'}: {type(error).__name__}: {str(error).strip()[:200]}"
        windows.phase = AFTER
        kinds.update((number, "output") for number in _storages(recorder, placed.results(result)) if number not in kinds)
        if recorder.idle is None and not failed and any(one.grad is not None for one in twin.parameters()):
            # One that this forward does not read may be trained by other data, if the forward asks for any.
            asks = bool(recorder.values.assumed) or usual(module) is not None
            recorder.idle = [name for name, one in twin.named_parameters() if one.grad is None and (not one.requires_grad or not asks or _storages(recorder, one) & recorder.readers.keys())]
        kinds.update((number, "grad") for number in _storages(recorder, [one.grad for one in twin.parameters()]))
        events, after, log = list(recorder.events), list(recorder.after), list(recorder.log)
        owned = [(name, number, one.nbytes) for name, one in twin.named_parameters() for number in _storages(recorder, one)]
        del result, twin, args, kwargs
        gc.collect()
        recorder.refs.clear()
    for number, place in enumerate(recorder.births, 1):
        if place.operation == WORKSPACE:
            kinds[number] = "static"
        elif place.operation.endswith("workspace"):
            kinds[number] = "workspace"
    moved: dict[int, str] = {}
    for made, read in reversed(recorder.sums):
        for label in list(recorder.readers.get(made, ()))[:1]:
            if made not in read:  # else it is made where its layer runs, and added to later
                moved[made] = label
            for number in read:
                recorder.readers.setdefault(number, {}).setdefault(label, False)
    summed = {number for made, read in recorder.sums if kinds.get(made) == "grad" for number in read}
    blocks, rests = _blocks(events, log, kinds, owned, 2 if mode != "infer" else 0)
    order = range(1, len(recorder.sizes) + 1)
    return Ran(recorder.sizes, blocks, rests, [kinds.get(one, "") for one in order], [recorder.nodes[one] for one in order], [recorder.savers.get(one, []) for one in order], [recorder.readers.get(one, {}) for one in order], events, after, moved, summed, recorder.callers, recorder.inside, recorder.ruled_by, sorted(recorder.products), recorder.biased, failed, mode != "infer", dropped)


def _blocks(events: list, log: list, kinds: dict[int, str], parameters: list, states: int) -> tuple[list[int], dict[str, int]]:
    """The block that each storage gets in a second step, after one of AdamW: a rest of up to 1 MiB is not cut off."""
    first = sum(number > 0 and kinds.get(number) == "static" and phase == STATIC for number, _, phase in events)
    count = len([number for number, _, _ in events if number > 0])
    again = list(log)
    alive = {number for number, _, _ in events if number > 0} - {-number for number, _, _ in events if number < 0}
    made = [size for _, _, size in parameters for _ in range(states)]
    again += [[2 * count + at + 1, 0, size] for at, size in enumerate(made) if size] + [[-number] for number in sorted(alive) if kinds.get(number) == "grad"]
    gone = [[-number] for number in sorted(alive) if kinds.get(number, "") in ("input", "output", "")]
    order = []
    for (number, _, phase), event in zip(events, log):
        if abs(number) <= first or kinds.get(abs(number)) in ("static", "workspace"):
            continue
        if phase == FORWARD and gone:  # the batch and the results of the step before are replaced
            again, gone = again + gone, []
        again.append([event[0] + count, *event[1:]] if number > 0 else [event[0] - count])
        order += [number] if number > 0 else []
    document = {"format_version": "devmap.allocations/v1", "devices": 1, "blocks": True, "events": again}
    blocks = json.loads(binary.run(["replay", "-"], fed=json.dumps(document, separators=(",", ":")).encode()).stdout)["devices"][0]["blocks"]
    once, of_states, twice = blocks[:count], iter(blocks[count:]), dict(zip(order, blocks[len(blocks) - len(order) :]))
    rests: dict[str, int] = {}
    shared: set[int] = set()
    for name, number, size in parameters:
        held = [0 if number in shared else once[number - 1]] + [next(of_states) for _ in range(states) if size]
        shared.add(number)  # weights of a recurrent layer are one buffer
        rests[name] = sum(held) - len(held) * size
    return [twice.get(number, 0) for number in range(1, count + 1)], rests


def _loss(result: Any) -> Any:
    """The loss that a result names, else the mean of all results in fp32."""
    found = placed.named_loss(result)
    if isinstance(found, torch.Tensor):
        return found
    tensors = [one for one in placed.results(result) if one.requires_grad]
    return sum(one.float().mean() for one in tensors) if tensors else None


def _checkpointed(twin: torch.nn.Module, units: list[str]) -> None:
    """Recomputes each unit, as torch.utils.checkpoint does around its forward."""
    for path in units:
        part = twin.get_submodule(path)
        forward = part.forward
        part.forward = lambda *args, _forward=forward, **kwargs: checkpoint(_forward, *args, use_reentrant=False, **kwargs)


# Steps at a few sizes as one tape.

MODES = ("train", "infer", "recompute")


def play(module: torch.nn.Module, layers: list[Layer], inputs: dict[str, Any], answers: dict, far: int) -> tuple[dict[str, dict], dict[str, str], bool, list[str]]:
    """The tape of each layer by name, as model.json has it, with inputs by mode; why a mode has none, whether
    there were convolutions whose workspaces no cuDNN said, and parameters without a gradient. far is a length at which
    growth is tried too, or 0: chunks and windows do not show in short sequences."""
    units = [unit for unit in dict.fromkeys(layer.unit for layer in layers if layer.params and layer.unit) if _holders(module, unit) > 1]
    size = lengths(*prepare(inputs["train"])[:2])

    def run(mode: str, alone: bool) -> dict[str, Any]:
        if alone:
            gc.freeze()  # what was there before is not looked through after each step
        with _session(alone, answers) as recorder:
            parts, why = _tape(recorder, module, layers, units, prepare(inputs[mode]), size, mode, far)
            return {"parts": parts, "failed": why, "unasked": recorder.unasked, "idle": recorder.idle or []}

    tapes: dict[str, dict] = {}
    said: dict[str, str] = {}
    found = _apart({mode: functools.partial(run, mode) for mode in (MODES if units else MODES[:2])})
    for mode, one in found.items():
        if one["failed"]:
            said[mode] = one["failed"]
        for label, part in one["parts"].items():
            tapes.setdefault(label, {})[mode] = part
    return tapes, said, any(one["unasked"] for one in found.values()), found["train"]["idle"]


def _holders(module: torch.nn.Module, path: str) -> int:
    """Modules with parameters of their own, in one of a path."""
    try:
        return sum(next(part.parameters(False), None) is not None for part in module.get_submodule(path).modules())
    except AttributeError:
        return 0


def _apart(runs: dict[str, Any]) -> dict[str, Any]:
    """Runs each in a process of its own, all at once, where the system can fork, as verified.run does."""
    if hasattr(os, "fork") and sys.platform != "darwin":
        processes = {mode: verified.started(run) for mode, run in runs.items()}
        found = {mode: verified.ended(one, f"devmap.export follows the memory of a step ({mode})") for mode, one in processes.items()}
        if torch.cuda.is_available() or not any(verified._THREADS in one["failed"] for one in found.values()):
            return found
    return {mode: run(False) for mode, run in runs.items()}


def _tape(recorder: _Recorder, module: Any, layers: list[Layer], units: list[str], inputs: tuple, size: tuple, mode: str, far: int) -> tuple[dict, str]:
    args, kwargs, values = inputs
    names = [layer.name for layer in layers]
    points = _points(*size)
    runs: list[Ran] = []

    def run(point: tuple[int, int, int]) -> Ran:
        known = dict(values)
        new = memory.resized(args, size, point, known), memory.resized(kwargs, size, point, known)
        new = tree_map(lambda one: known.get(id(one), _zeros(one)) if isinstance(one, torch.Tensor) else one, new)
        return step(recorder, module, {layer.name: layer.unit or layer.name for layer in layers}, units, *new, mode)

    for at, point in enumerate(points):
        if at == 2 and _proven(points, runs):
            points = points[:2]
            break
        ran = run(point)
        if ran.failed and not runs:
            return {}, ran.failed
        if ran.failed or runs and ran.events != runs[0].events:
            break
        runs.append(ran)
    if far and len(runs) == len(points) and not (ran := run((size[0], far, 0))).failed:
        points, runs = [*points, (size[0], far, 0)], [*runs, ran]
    tape = Tape(runs, [point[:2] for point in points[: len(runs)]] if len(runs) == len(points) else points[:1], layers)
    return {label: part for label in names if (part := tape.of(label))}, ""


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    """An input: whole numbers are real."""
    return tensor if tensor.is_floating_point() or not tensor.is_meta else torch.zeros(tensor.shape, dtype=tensor.dtype)


def _points(batch: int, seq: int, target: int) -> list[tuple[int, int, int]]:
    """Sizes to run at: two that tell TERMS apart, and more for sums of two terms."""
    if target:
        return [(batch, seq, target)]
    less = next((one for one in (64, 32, 16, 8, 4, 2) if 3 * one <= seq), 0)
    if not less:
        return [(batch, seq, 0), (batch + 1, seq, 0), (batch + 3, seq, 0)]
    return [(batch, seq, 0), (batch + 1, seq - less, 0), (batch + 1, seq, 0), (batch, seq - less, 0), (batch + 1, seq - 2 * less, 0)]


def _proven(points: list[tuple[int, int, int]], runs: list[Ran]) -> bool:
    """Whether all sizes of two steps are fixed or grow with one term, and the two sizes tell the terms apart. cuDNN takes
    another plan for another size, so that its workspaces prove nothing."""
    rows = [[term(*point[:2]) for term in TERMS if term(*points[0][:2])] for point in points[:2]]
    growths = [new / old for old, new in zip(*rows)]
    if len({round(one, 9) for one in growths}) < len(growths):
        return False
    inside = runs[0].inside
    return all(inside.get(number, "").startswith("inside convolution") or any(old * row[1] == new * row[0] for row in zip(*rows)) for number, (old, new) in enumerate(zip(runs[0].sizes, runs[1].sizes), 1))


class Tape:
    """Vectors of bytes by TERMS: fixed, a sequence, a token, a pair of tokens, a position, a pair of positions."""

    def __init__(self, runs: list[Ran], points: list[tuple[int, int]], layers: list[Layer]) -> None:
        first = runs[0]
        self.units = {layer.name: layer.unit for layer in layers if layer.unit}
        self.layers = {layer.name for layer in layers}
        self.kept: dict[str, list[int]] = {}
        self.returned: dict[str, list[int]] = {}
        self.loss = [0] * len(TERMS)
        self.copied: dict[str, dict[str, list[int]]] = {}
        self.moments: dict[tuple[str, str], list[tuple[list[int], list[int], dict[str, list[int]]]]] = {}
        self.products = first.products
        same = len(points) > 1 and all(run.events == first.events and run.kinds == first.kinds for run in runs[1:])
        sizes = [_fitted(points, [run.sizes[at] for run in runs], at + 1 in first.inside) for at in range(len(first.sizes))] if same else []
        self.grows = same and all(sizes)
        self.sizes: list[list[int]] = sizes if self.grows else [[_rounded(size)] for size in first.sizes]
        self.uncut = [max(0, block - _rounded(plain)) for plain, block in zip(first.sizes, first.blocks)]
        for size, rest in zip(self.sizes, self.uncut):
            size[0] += rest
        self.order = list(dict.fromkeys(label for number, label, _ in first.events if label and first.kinds[abs(number) - 1] not in _ELSEWHERE))
        self.rests: dict[str, int] = {}
        for name, rest in first.rests.items():
            while name and name not in self.layers:
                name = name.rpartition(".")[0]
            self.rests[name] = self.rests.get(name, 0) + rest
        self._keeps(first)
        self._read(first)

    def _keeps(self, ran: Ran) -> None:
        """What layers keep, and the layer at which each other storage is at home while others run: the earlier of those
        of its birth and its death. A result moves to the GPU that reads it, a gradient to the one that made the tensor."""
        born = {number: (ran.moved.get(number, label), phase) for number, label, phase in ran.events if number > 0}
        dies = {-number: (ran.moved.get(-number, label), phase) for number, label, phase in ran.events if number < 0}
        other, until = len(ran.events), {}  # births to the next window of another layer
        for at in range(len(ran.events) - 1, -1, -1):
            if at + 1 < len(ran.events) and ran.events[at + 1][1] != ran.events[at][1]:
                other = at + 1
            until[ran.events[at][0]] = other
        stays = {-number for at, (number, _, _) in enumerate(ran.events) if number < 0 and at < until[-number]}
        # The home, the units that have to do with it, and those whose callers have: a copy for a unit ends with its forward.
        self.passing: dict[int, tuple[str, set[str], set[str]]] = {}
        self.held: dict[int, tuple[str, set[str]]] = {}  # what layers keep, where some are called in turn
        windows = [label for (_, label, phase), (_, before, _) in zip(ran.events[1:], ran.events) if phase == FORWARD and label != before]
        in_turn = len(set(windows)) < len(windows)
        for number, (label, phase) in born.items():
            kind, size, end = ran.kinds[number - 1], self.sizes[number - 1], dies.get(number)
            if kind in _ELSEWHERE or kind == "grad":
                continue
            if kind == "input":
                owner = self.order[0] if self.order else ""
                self._keep(self.kept, owner, size)
                self._copies(ran, number, owner, owner, size)
            elif kind == "" and phase == FORWARD and (end is None or end[1] != FORWARD and ran.trains):
                owner = max(label, end[0] if end else label, key=self._place)
                self._keep(self.kept, owner, size)
                if in_turn:
                    self.held[number] = owner, {self.units.get(one, one) for one in (label, *ran.savers[number - 1], *ran.readers[number - 1])}
                self._copies(ran, number, owner, label, size)
            elif kind == "output":
                self._keep(self.returned, label, size)
            else:
                users = {label, *ran.readers[number - 1]}
                home = min(users, key=self._place)
                touched = {self.units.get(one, one) for one in users}
                called = {self.units.get(one, one) for one, after in ran.readers[number - 1].items() if after or one == label}
                if number not in stays or len(touched) > 1:
                    self.passing[number] = home, touched, called | {self.units.get(label, label)}
        sizes = [self.sizes[at] for at, kind in enumerate(ran.kinds) if kind == "workspace"]
        if ran.biased and sizes:  # a step before made it, on each GPU with such a product
            self._keep(self.kept, ran.biased[0], sizes[0])
            for before, label in zip(ran.biased, ran.biased[1:]):
                self._keep(self.copied.setdefault(label, {}), before, sizes[0])

    def _copies(self, ran: Ran, number: int, owner: str, maker: str, size: list[int]) -> None:
        """What units save of another's. A hook copies it for each unit that is called with it, if another GPU made it."""
        unit = {one: self.units.get(one, one) for one in (owner, maker, *ran.savers[number - 1])}
        seen = {unit[owner]}
        for saver in ran.savers[number - 1]:
            if unit[saver] not in seen:
                seen.add(unit[saver])
                self._keep(self.copied.setdefault(saver, {}), owner if unit[saver] == unit[maker] else maker, size)

    def _read(self, ran: Ran) -> None:
        """The moments: births, since the most is there after one."""
        alive, grads, fresh = ([0] * len(TERMS) for _ in range(3))
        sizes = [self.sizes[at] for at, kind in enumerate(ran.kinds) if kind == "workspace"]
        if ran.biased and sizes:
            _add(alive, sizes[0], 1)
        here: set[int] = set()  # of those that pass by
        callers = [0] * len(TERMS)
        uncut: dict[str, list[int]] = {}  # rests of gradients, which the layer's own size has not
        node, window, windows = None, 0, {}  # windows: of births, since what a call made for another GPU is there no longer in the next
        before = ""
        for (number, label, phase), after in zip(ran.events, ran.after):
            window, before = window + (label != before), label
            windows.setdefault(number, window)
            kind, size = ran.kinds[abs(number) - 1], self.sizes[abs(number) - 1]
            if kind in _ELSEWHERE:
                continue
            if abs(number) in self.passing or abs(number) in self.held:
                (here.add if number > 0 else here.discard)(abs(number))
            _add(grads if kind == "grad" else alive, size, 1 if number > 0 else -1)
            if abs(number) in ran.callers:
                _add(callers, size, 1 if number > 0 else -1)
                self.loss = [max(pair) for pair in zip(self.loss, callers)]
            if number < 0:
                continue
            if ran.nodes[number - 1] != node:
                node, fresh = ran.nodes[number - 1], [0] * len(TERMS)
            if kind == "grad":
                _add(fresh, size, 1)
                if self.uncut[number - 1]:
                    self._keep(uncut, label, [self.uncut[number - 1]])
            past: dict[str, list[int]] = {}
            for one in here:
                if one in self.held:
                    home, touched = self.held[one]
                    if self._place(home) > self._place(label) and (windows[one] != window or self.units.get(label, label) not in touched):
                        self._keep(past, home, self.sizes[one - 1])
                    continue
                home, touched, called = self.passing[one]
                if one in ran.summed and self._place(home) > self._place(label):
                    continue  # a later layer's gradient, which counts as that
                if self.units.get(label, label) not in (called if after else touched):
                    self._keep(past, home, self.sizes[one - 1])
            if ran.biased and sizes and self._place(label) < self._place(ran.biased[0]):
                self._keep(past, ran.biased[0], sizes[0])
            if phase == FORWARD:
                self._moment("forward", label, alive, past)
            elif phase == BACKWARD:
                self._moment("accumulate", label, [a + b for a, b in zip(alive, fresh)], past)
                elsewhere = {one: rest for one, rest in uncut.items() if self.units.get(one, one) != self.units.get(label, label)}
                for one, rest in elsewhere.items():
                    past = {**past, one: [a + b for a, b in zip(past.get(one, [0] * len(TERMS)), rest)]}
                self._moment("backward", label, [a + b for a, b in zip(alive, grads)], past)

    def _place(self, label: str) -> int:
        return self.order.index(label) if label in self.order else -1

    def _keep(self, of: dict[str, list[int]], label: str, size: list[int]) -> None:
        _add(of.setdefault(label, [0] * len(TERMS)), size, 1)

    def _moment(self, what: str, label: str, bytes_: list[int], past: dict[str, list[int]]) -> None:
        """Notes a moment, unless another has more of every term, with what passes by and without."""
        without = list(bytes_)
        for size in past.values():
            _add(without, size, -1)
        known = self.moments.setdefault((label, what), [])
        if any(_covers(one[0], bytes_) and _covers(one[1], without) for one in known):
            return
        known[:] = [one for one in known if not (_covers(bytes_, one[0]) and _covers(without, one[1]))] + [(list(bytes_), without, past)]

    def of(self, label: str) -> dict[str, Any]:
        """A layer's part of model.json."""
        out: dict[str, Any] = {}
        for name, of in (("saved", self.kept), ("returned", self.returned)):
            if any(of.get(label, ())):
                out[name] = _short(of[label])
        for what in ("forward", "backward", "accumulate"):
            found = self.moments.get((label, what))
            if found:
                out[what] = [{"bytes": _short(one), **({"past": _shorts(past)} if past else {})} for one, _, past in found]
        if self.copied.get(label):
            out["copied"] = _shorts(self.copied[label])
        if self.rests.get(label):
            out["rests"] = self.rests[label]
        if label in self.products:
            out["products"] = True
        if any(self.loss) and label == self.order[-1]:
            out["loss"] = _short(self.loss)
        return out


_ELSEWHERE = ("static", "workspace")  # what is there throughout


def _covers(one: list[int], other: list[int]) -> bool:
    return all(a >= b for a, b in zip(one, other))


def _shorts(of: dict[str, list[int]]) -> dict[str, list[int]]:
    return {label: _short(size) for label, size in of.items()}


def _add(to: list[int], size: list[int], sign: int) -> None:
    for at, value in enumerate(size):
        to[at] += sign * value


def _short(vector: list[int]) -> list[int]:
    end = len(vector)
    while end > 1 and vector[end - 1] == 0:
        end -= 1
    return vector[:end]


def _rounded(size: int) -> int:
    return max(512, -(-size // 512) * 512)


def _fitted(points: list[tuple[int, int]], sizes: list[int], inside: bool) -> list[int] | None:
    """A size as one of TERMS or the sum of two, through all points; the allocator rounds what is fixed. What a kernel
    takes inside grows in steps: it counts by the sequence."""
    if len(set(sizes)) == 1:
        return [_rounded(sizes[0])]
    rows = [[term(*point) for term in TERMS] for point in points]
    for at in range(1, len(TERMS)):
        if rows[0][at] and sizes[0] % rows[0][at] == 0 and all(size * rows[0][at] == sizes[0] * row[at] for size, row in zip(sizes, rows)):
            return [0] * at + [sizes[0] // rows[0][at]]
    for one in range(len(TERMS) if len(points) > 2 else 0):
        for other in range(one + 1, len(TERMS)):
            found = _two(rows, sizes, one, other)
            if found is not None:
                return found
    return [0, -(-sizes[0] // points[0][0])] if inside else None


def _two(rows: list[list[int]], sizes: list[int], one: int, other: int) -> list[int] | None:
    (a, b), (c, d) = ((row[one], row[other]) for row in rows[:2])
    if a * d == b * c:
        (c, d), sizes = (rows[2][one], rows[2][other]), [sizes[0], sizes[2], *sizes[1:2], *sizes[3:]]
        rows = [rows[0], rows[2], *rows[1:2], *rows[3:]]
    under = a * d - b * c
    if under == 0:
        return None
    x, y = (sizes[0] * d - b * sizes[1]) / under, (a * sizes[1] - sizes[0] * c) / under
    if x < 0 or y < 0 or x != int(x) or y != int(y) or any(row[one] * x + row[other] * y != size for row, size in zip(rows, sizes)):
        return None
    out = [0] * len(TERMS)
    out[one], out[other] = int(x), int(y)
    return out
