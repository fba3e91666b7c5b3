"""A forward and a backward with a module's parts on several GPUs that are not there, as Accelerate's hooks place them.

Apart runs a given device map and stops at the first operation whose tensors are on two GPUs. Meetings gives each part a
GPU of its own, and notes every such operation instead: the parts that must be on one GPU.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, override"

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from ..errors import DevmapError
from ..verified import LOST
from . import fake_copies
from .calls import Meta
from .events import Ledger, device_of
from .machine import GUARD, Machine, pretended
from .places import Places, line_of, line_of_error
from .values import Values

MOST = 126  # GPUs that torch can number: c10/core/Device.h, DeviceIndex is int8_t


class Meeting(NamedTuple):
    """An operation of a module's own code that reads tensors of two devices."""

    module: str  # its path and class
    line: str
    operation: str
    devices: tuple[str, ...]
    keys: tuple[str, ...] = ()  # the module of the map that each device ran last


class Split(Exception):
    """Tensors of one operation are on two devices."""

    def __init__(self, meeting: Meeting) -> None:
        super().__init__(str(meeting))
        self.meeting = meeting


class _Guesses(Values):
    """Every question about data has an answer: devices seldom depend on it. What is made of whole numbers that the model
    was called with, such as lengths, has a value."""

    def one(self, tensor: Any, line: str, made_by: str) -> Any:
        value = getattr(tensor, "_devmap_value", None)
        if value is not None:
            return value.item()
        if tensor.dtype == torch.bool or tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            return super().one(tensor, line, made_by)
        self.assumed[line] = f"{line} reads a whole number: 1 was assumed"
        return 1

    def count(self, operation: str, tensor: Any, line: str) -> int:
        self.assumed[line] = f"{line} counts what {operation} finds: all was assumed"
        return tensor.numel()


class _Judge(Ledger):
    """Runs operations without their memory, and compares the devices of their tensors."""

    stops = True

    def __init__(self, machine: Machine, places: Places) -> None:
        super().__init__(machine, _Guesses(None), places)
        self.meetings: list[Meeting] = []
        self.seen: set[Meeting] = set()
        self.last_called: dict[int, str] = {}
        self.sources: dict[int, tuple[Any, Any, Any]] = {}  # by the storage of a hook's copy: the storage that it is of, its own (both live on), and the device of the first
        self.lost: dict[int, Meeting] = {}  # by the storage of an argument, what was written into a copy of it alone

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:
            return device_of(args[0], sys._getframe(1))
        name = func._schema.name.split("::")[1]
        if self.sources and torch._C._current_autograd_node() is None:
            self._writes(func, name, args, kwargs)
        if name.endswith("_") and args and isinstance(args[0], FakeTensor):
            args[0]._devmap_value = None  # type: ignore[attr-defined]
        if name != "copy_" and (name in _NOT_RUN or not func._schema.returns) and len(_devices(args, kwargs)) > 1:
            args, kwargs = self._met(name, args, kwargs)
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _on_gpu(self, func: Any, name: str, types: Any, args: Any, kwargs: Any, index: int) -> Any:
        out = self._met_or_not(func, name, types, args, kwargs)
        if name not in _RANDOM and not name.endswith("_"):
            _follow(func, args, kwargs, out)
        if isinstance(out, FakeTensor) and out.dtype == torch.bool:
            out._devmap_made_by = name  # type: ignore[attr-defined]
        return out

    def sent(self, tensor: Any, copy: Any) -> None:
        """A hook moved a tensor: what is written into the copy does not reach the tensor."""
        if isinstance(tensor, FakeTensor) and isinstance(copy, FakeTensor) and copy.fake_device != tensor.fake_device:
            mine = copy.untyped_storage()
            self.sources[mine._cdata] = tensor.untyped_storage(), mine, tensor.fake_device

    def _writes(self, func: Any, name: str, args: Any, kwargs: Any) -> None:
        """Notes writes into hooks' copies. They are lost where the caller's tensor is read again before all of it is replaced."""
        whole = name in ("copy_", "zero_", "fill_") and isinstance(args[0], FakeTensor) and args[0].nbytes == args[0].untyped_storage().nbytes()
        if whole:
            self.lost.pop(args[0].untyped_storage()._cdata, None)
        self.read((args[whole:], kwargs))
        for value, about in zip(args, func._schema.arguments) if func._schema.is_mutable else ():
            if about.alias_info is None or not about.alias_info.is_write or not isinstance(value, FakeTensor):
                continue
            key, device, place = value.untyped_storage()._cdata, value.fake_device, self.places.here(name)
            while key in self.sources:
                source, _, home = self.sources[key]
                key = source._cdata
                found = (home, device)
                self.lost.setdefault(key, Meeting(place.module, place.line or line_of(sys._getframe(2)), name + LOST, tuple(map(str, found)), tuple(self.last_called.get(one.index, "") for one in found)))

    def read(self, value: Any) -> None:
        """Notes a lost write into what is read."""
        for one in tree_leaves(value) if self.lost else ():
            meeting = self.lost.pop(one.untyped_storage()._cdata, None) if isinstance(one, FakeTensor) else None
            if meeting is not None:
                self.meetings.append(meeting)
                if self.stops:
                    raise Split(meeting)

    def made_by(self, tensor: Any) -> str:
        return getattr(tensor, "_devmap_made_by", "")

    def _met_or_not(self, func: Any, name: str, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self._faked(func, name, types, args, kwargs)
        except DevmapError:
            raise
        except Exception:
            if len(_devices(args, kwargs)) < 2:
                raise
        args, kwargs = self._met(name, args, kwargs)
        return self._faked(func, name, types, args, kwargs)

    def _met(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Notes a meeting; the arguments as if all were on the first device."""
        line = line_of(sys._getframe(2))
        place = self.places.here(name)
        found = _devices(args, kwargs)
        meeting = Meeting(place.module, place.line or line, name, tuple(map(str, found)), tuple(self.last_called.get(one.index, "") if one.type == "cuda" else "" for one in found))
        if meeting not in self.seen:
            self.seen.add(meeting)
            self.meetings.append(meeting)
        if self.stops:
            raise Split(meeting)
        return tree_map(functools.partial(self._moved, to=found[0]), (args, kwargs or {}))

    def _moved(self, value: Any, to: torch.device) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) and value.fake_device == to:
            return value
        if not isinstance(value, FakeTensor) and value.dim() == 0:
            return value
        with self.fake:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=to)


_RANDOM = frozenset("rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal native_dropout empty empty_like empty_strided new_empty".split())
_SMALL = 4096  # elements of a tensor that may have a value


def _follow(func: Any, args: Any, kwargs: Any, out: Any) -> None:
    """Gives the results of an operation their values, if all its tensors have some."""
    outs = [one for one in tree_leaves(out) if isinstance(one, FakeTensor)]
    if not outs or any(one.numel() > _SMALL for one in outs):
        return
    known: dict[int, Any] = {}
    for one in tree_leaves((args, kwargs)):
        if isinstance(one, torch.Tensor):
            value = getattr(one, "_devmap_value", None) if isinstance(one, FakeTensor) else one
            if value is None or value.is_meta:
                return
            known[id(one)] = value
    if "device" in kwargs:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    try:
        real = func(*tree_map(lambda one: known.get(id(one), one), args), **tree_map(lambda one: known.get(id(one), one), kwargs))
    except Exception:  # noqa: BLE001 - no value then
        return
    for one, value in zip(outs, [value for value in tree_leaves(real) if isinstance(value, torch.Tensor)]):
        one._devmap_value = value  # type: ignore[attr-defined]


class _Noting(_Judge):
    stops = False


class _Functions(Meta):
    """Functions that compare devices in C++, before any operation runs: attention, convolutions, recurrent layers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, torch._ops.OpOverload):  # of an exported program, whose devices move_to_device_pass sets
            args, kwargs = tree_map(lambda one: self.ledger.last if isinstance(one, torch.device) else one, (args, kwargs or {}))
        try:
            return super().__torch_function__(func, types, args, kwargs)
        except (Split, DevmapError):
            raise
        except Exception as error:
            found = _devices(args, kwargs)
            if len(found) < 2 or not isinstance(self.ledger, _Judge):
                if GUARD not in str(error):
                    raise
                return self._unguarded(found[0], func, types, args, kwargs)
        args, kwargs = self.ledger._met(getattr(func, "__name__", str(func)), args, kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def _unguarded(self, device: torch.device, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """The function where C++ sees no GPU of any number."""
        mode = self.ledger.fake
        mode.indexing, self.ledger.last = True, device
        try:
            return super().__torch_function__(func, types, args, kwargs)
        finally:
            mode.indexing = False


_NOT_RUN = frozenset("zero_ fill_ normal_ uniform_ add_ sub_ mul_ div_ addcmul_ addcdiv_ lerp_".split())


def _devices(args: Any, kwargs: Any) -> list[torch.device]:
    """The devices of an operation's tensors, GPUs first. A number on the CPU goes with any."""
    found: list[torch.device] = []
    for one in tree_leaves((args, kwargs)):
        if not isinstance(one, torch.Tensor):
            continue
        device = one.fake_device if isinstance(one, FakeTensor) else torch.device("cpu")
        if device not in found and (device.type != "cpu" or one.dim() > 0):
            found.append(device)
    return sorted(found, key=lambda device: device.type == "cpu")


# Accelerate's placement (1.15, hooks.py and big_modeling.py): tensors go to the device of the nearest key, a module of a
# key and the modules inside it move what they are called with. The root does so too, to the first device of the map, and
# gives its result back to the device of its inputs.


def place(
    module: torch.nn.Module, device_map: Mapping[str, Union[int, str]], main: Optional[int], skip: Iterable[str], judge: Any
) -> None:
    """Puts the tensors of a copy on their devices and hooks around its modules, as dispatch_model does on a module whose
    checkpoint was loaded with the map. main is the root's device if not the first."""
    gpus = [device for device in device_map.values() if isinstance(device, int)]
    if not gpus:
        raise DevmapError(f"verify: the map names no GPU (its devices: {', '.join(sorted(set(map(str, device_map.values()))))}): on one device every step runs")
    fake, main = judge.fake, torch.device("cuda", min(gpus) if main is None else main)
    # What is offloaded runs on the first device.
    devices = {key: torch.device("cuda", device) if isinstance(device, int) else main for key, device in device_map.items()}
    moved: dict[tuple[int, torch.device], Any] = {}

    def move(part: torch.nn.Module, device: torch.device) -> None:
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and (not isinstance(tensor, FakeTensor) or tensor.fake_device != device):
                    key = (id(tensor), device)
                    if key not in moved:
                        with fake:
                            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
                        moved[key] = (torch.nn.Parameter(made, tensor.requires_grad) if tensors is part._parameters else made), tensor
                    tensors[name] = moved[key][0]

    for name, _ in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        device = _nearest(devices, name)
        if device is None:
            raise DevmapError(f"verify: no key of the map is above {name!r}: give it, or a module that holds it, a device")
        path, _, own = name.rpartition(".")
        holder = module.get_submodule(path)
        if name in devices:  # a bare tensor: loaders put it there, hooks do not move it
            only = torch.nn.Module()
            only._parameters = {own: holder._parameters[own]} if own in holder._parameters else {}
            only._buffers = {own: holder._buffers[own]} if own in holder._buffers else {}
            move(only, device)
            holder._parameters.update(only._parameters)
            holder._buffers.update(only._buffers)
    skip = frozenset(skip)
    hooked: set[int] = set()

    def below(part: torch.nn.Module, device: torch.device, offloaded: bool) -> None:
        move(part, device)
        if id(part) not in hooked and len(part.state_dict()) > 0:
            hooked.add(id(part))
            _hook(part, device, skip, judge)
        if offloaded and part._parameters:
            _offload(part, fake)
        for child in part.children():
            below(child, device, offloaded)

    def visit(path: str, part: torch.nn.Module) -> None:
        if path in devices:
            hooked.discard(id(part))
            _hook(part, devices[path], skip, judge, back=path == "", entered=lambda: judge.last_called.update({devices[path].index: path}))
            hooked.add(id(part))
            below(part, devices[path], isinstance(device_map[path], str))
        elif path == "":
            move(part, main)
            _hook(part, main, skip, judge, back=True)
        for name, child in part.named_children():
            visit(f"{path}.{name}" if path else name, child)

    visit("", module)


def _nearest(devices: Mapping[str, torch.device], name: str) -> Optional[torch.device]:
    while name and name not in devices:
        name = name.rpartition(".")[0]
    return devices.get(name)


def _hook(
    part: torch.nn.Module, device: torch.device, skip: Iterable[str], judge: _Judge, back: bool = False, entered: Any = None
) -> None:
    """A later hook replaces one before, as add_hook_to_module does."""
    forward = vars(part).get("_devmap_forward", part.forward)
    part._devmap_forward = forward

    @functools.wraps(forward)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if entered is not None:
            entered()
        before = _first_device((args, kwargs)) if back else None
        result = forward(*_sent(args, device, (), judge), **_sent(kwargs, device, skip, judge))
        if back:
            judge.read(result)
        return result if before is None else _sent(result, before, skip, judge)

    part.forward = hooked


def _offload(part: torch.nn.Module, fake: Any) -> None:
    """Gives a module its own weights while it runs, as AlignDevicesHook does; buffers stay (offload_buffers)."""
    forward, loaded = part.forward, dict(part._parameters)
    with fake:
        away = {
            name: None if one is None else torch.nn.Parameter(torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="cpu"), one.requires_grad)
            for name, one in loaded.items()
        }

    @functools.wraps(forward)
    def aligned(*args: Any, **kwargs: Any) -> Any:
        part._parameters.update(loaded)
        try:
            return forward(*args, **kwargs)
        finally:
            part._parameters.update(away)

    part._parameters.update(away)
    part.forward = aligned


def _sent(value: Any, device: torch.device, skip: Iterable[str], judge: _Judge) -> Any:
    """accelerate/utils/operations.py: send_to_device."""
    if isinstance(value, torch.Tensor) or hasattr(value, "to"):
        made = value.to(device)
        judge.sent(value, made)
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_sent(one, device, skip, judge) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_sent(one, device, skip, judge) for one in value)
    if isinstance(value, Mapping):
        return type(value)({key: one if key in skip else _sent(one, device, skip, judge) for key, one in value.items()})
    return value


def _first_device(value: Any) -> Optional[torch.device]:
    for one in tree_leaves(value):
        if isinstance(one, torch.Tensor):
            return one.device
    return None


def _recurrent(function: Any, input: Any, *args: Any) -> Any:
    """torch._VF.lstm and its like, which are one call of cuDNN on a GPU: results of its sizes that every tensor leads to."""
    if not input.is_cuda:
        return function(input, *args)
    packed = isinstance(args[0], torch.Tensor) and args[0].dtype == torch.int64
    hidden, weights, both = args[packed], args[1 + packed], args[6 + packed]
    states = hidden if isinstance(hidden, (tuple, list)) else (hidden,)
    width = states[0].shape[-1] * (2 if both else 1)
    total = sum((one.sum() for one in (*states, *weights)), input.sum())
    return (input.new_zeros((*input.shape[:-1], width)) + total, *(torch.zeros_like(one) + total for one in states))


def _recurrent_layers() -> list[tuple[Any, str, Any]]:
    functions = torch._C._VariableFunctions
    return [(torch._VF, name, functools.partial(_recurrent, getattr(functions, name))) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]


# Stages of torch.distributed.pipelining, each on a GPU of its own. What a stage runs follows the order of the calls
# (_IR.py, pipeline: a split point is where a module begins), so a stage begins with the first call of one of its modules
# and ends where the next begins. Activations and inputs of the model are sent to the stages that read them
# (stage.py, _create_act_send_info). A buffer is copied to each stage that reads it; so is a parameter
# (MultiUseParameterConfig.REPLICATE), but then its copies train apart: that is a fault.


class _Stages(_Functions):
    """Functions of the stage that runs, with tensors of the stages before it as they arrive."""

    def __init__(self, judge: _Judge) -> None:
        super().__init__(judge)
        self.judge, self.now = judge, torch.device("cuda", 0)
        self.traced = False  # all is one stage, as the trace sees it: nothing crosses
        self.owned: dict[int, str] = {}  # storage of a parameter to its name
        self.storages: list[Any] = []  # these live on, so that no other has their address: cuDNN's weights are put into one
        self.names: dict[int, str] = {}  # stage to the module that it began with

    def enter(self, path: str, stage: int) -> None:
        """A module of a stage is called."""
        if stage < self.now.index:
            self._fail(f"the call of {path} (stage {stage})", torch.device("cuda", stage))
        if stage > self.now.index:
            self.now = torch.device("cuda", stage)
            self.judge.last_called[stage] = path

    def _fail(self, operation: str, other: torch.device) -> None:
        place = self.judge.places.here(operation)
        raise_at = place.line or line_of(sys._getframe(3))
        meeting = Meeting(place.module, raise_at, operation, (f"stage {self.now.index}", f"stage {other.index}"))
        self.judge.meetings.append(meeting)
        raise Split(meeting)

    def _arrived(self, value: Any) -> Any:
        if self.traced or not isinstance(value, FakeTensor) or value.fake_device.type != "cuda" or value.fake_device == self.now:
            return value
        name = self.owned.get(value.untyped_storage()._cdata)
        if name is not None:
            self._fail(f"reading {name}", value.fake_device)
        with torch._C.DisableTorchFunction():
            return value.to(self.now)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in _ASKED:
            args, kwargs = tree_map(self._arrived, (args, kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


_ASKED = frozenset("__get__ __set__ size dim numel stride is_contiguous element_size storage_offset data_ptr __len__ is_floating_point untyped_storage".split())


def stage(module: torch.nn.Module, device_map: Mapping[str, Union[int, str]], judge: _Judge, functions: _Stages) -> None:
    """Puts a copy's tensors on the GPUs of their stages, and notes the calls of each stage's modules."""
    stages = {key: torch.device("cuda", number) for key, number in device_map.items() if isinstance(number, int)}
    functions.traced = len(set(stages.values())) == 1
    for name, _ in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        device = _nearest(stages, name)
        if device is None:
            raise DevmapError(f"verify: no stage holds {name!r}")
        path, _, own = name.rpartition(".")
        holder = module.get_submodule(path)
        tensors = holder._parameters if own in holder._parameters else holder._buffers
        if tensors[own] is not None and (not isinstance(tensors[own], FakeTensor) or tensors[own].fake_device != device):
            _staged(tensors, own, device, judge)
        if tensors is holder._parameters:
            functions.storages.append(tensors[own].untyped_storage())
            functions.owned[functions.storages[-1]._cdata] = name
    for path, part in module.named_modules():
        device = _nearest(stages, path)
        if device is not None and next(part.parameters(), None) is not None:
            _begins(part, path, device.index, functions)


def _given(judge: _Judge, to: torch.device, value: Any) -> Any:
    """An input on the GPU of the first stage."""
    made = judge._moved(value, to)
    if made is not value and not isinstance(value, FakeTensor) and value.numel() <= _SMALL:
        made._devmap_value = value
    return made


def _staged(tensors: dict, own: str, device: torch.device, judge: _Judge) -> None:
    tensor = tensors[own]
    made = getattr(tensor, "_devmap_staged", None)
    if made is None or made.fake_device != device:
        with judge.fake:
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, tensor.requires_grad)
        tensor._devmap_staged = made  # a tied one stays one tensor
    tensors[own] = made


def _begins(part: torch.nn.Module, path: str, number: int, functions: _Stages) -> None:
    forward = part.forward

    @functools.wraps(forward)
    def called(*args: Any, **kwargs: Any) -> Any:
        functions.enter(path, number)
        return forward(*args, **kwargs)

    part.forward = called


def _scripts() -> list[tuple[Any, str, Any]]:
    """Functions of torch.jit.script, which run in C++, as the Python that they were made of (torch/jit/_script.py)."""
    found = []
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, torch.jit.ScriptFunction) and hasattr(value, "_torchdynamo_inline"):
                found.append((module, name, value._torchdynamo_inline))
    return found


# A step.


class Run(NamedTuple):
    """How a step went."""

    meetings: list[Meeting]
    assumed: list[str]
    failed: str  # why the forward ended, if not for devices


def step(
    module: torch.nn.Module,
    device_map: Mapping[str, Union[int, str]],
    args: tuple,
    kwargs: Mapping[str, Any],
    *,
    backward: bool = True,
    stops: bool = True,
    alone: bool = False,
    main: Optional[int] = None,
    engine: str = "accelerate",
) -> Run:
    """One forward of a copy under the map, and a backward of the sum of its results. alone: this process is for it.
    With the engine "torch" the map is of stages."""
    machine = Machine.of(MOST if "" in device_map else 1 + max((device for device in device_map.values() if isinstance(device, int)), default=0))
    places = Places()
    judge = (_Judge if stops else _Noting)(machine, places)
    failed = ""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        disabled = logging.root.manager.disable
        logging.disable(logging.ERROR)
        stack.callback(logging.disable, disabled)
        stack.enter_context(pretended(machine, judge, _recurrent_layers() + _scripts(), alone))
        stack.enter_context(places.following())
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(torch.fx.traceback.preserve_node_meta())
        twin, args, kwargs = fake_copies(judge, (module, args, dict(kwargs)))
        functions: _Functions = _Functions(judge)
        if engine == "torch":
            functions = _Stages(judge)
            stage(twin, device_map, judge, functions)
            args, kwargs = tree_map(functools.partial(_given, judge, functions.now), (args, kwargs))
        else:
            place(twin, device_map, main, getattr(module, "_skip_keys_device_placement", None) or (), judge)
        stack.enter_context(judge)
        stack.enter_context(functions)
        try:
            with torch.set_grad_enabled(backward):
                result = twin(*args, **kwargs)
                result = list(result) if isinstance(result, Iterator) else result
                if backward:
                    _backward(result)
        except Split:
            pass
        except Exception as error:  # noqa: BLE001 - whatever a forward raises
            if not judge.meetings or not stops:
                said = str(error).strip().splitlines()
                failed = f"{line_of_error(error) or 'the forward'}: {type(error).__name__}: {(said or [''])[0][:200]}"
    return Run(judge.meetings, sorted(judge.values.assumed.values()), failed)


def results(value: Any, depth: int = 4) -> list[Any]:
    """The tensors of a forward's result, in dataclasses too; in attributes of other objects where there are none else."""
    leaves = tree_leaves(list(value.values()) if isinstance(value, Mapping) else value)
    found = [one for one in leaves if isinstance(one, torch.Tensor)]
    for one in leaves if depth else ():
        if dataclasses.is_dataclass(one) and not isinstance(one, (type, torch.Tensor)):
            found += results([getattr(one, field.name, None) for field in dataclasses.fields(one)], depth - 1)
        elif not found and hasattr(one, "__dict__") and not isinstance(one, (type, torch.nn.Module)):
            found += results(list(vars(one).values()), depth - 1)
    return found


def named_loss(result: Any) -> Any:
    """What a result, an object or a dict, calls its loss."""
    return result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)


def _backward(result: Any) -> None:
    """A backward of the loss, if the result names one, else of the sum of all results, each on its own device."""
    loss = named_loss(result)
    tensors = [one for one in ([loss] if isinstance(loss, torch.Tensor) else results(result)) if one.requires_grad]
    if tensors:
        torch.autograd.backward(tensors, [torch.ones_like(one) for one in tensors])
