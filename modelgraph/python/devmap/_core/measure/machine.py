"""GPUs that are not there: what torch.cuda answers while a step is measured."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, attr-defined, override"

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _foreach_utils, backend_registration

from .. import binary
from ..errors import DevmapError, UsageError
from .recurrent import flatten


# What a function says that sets the driver's device, of which there are 8 without a driver.
GUARD = "kFakeGuardImplMaxDevices"
IDLE = "devmap_idle"  # a backend that stands for an accelerator of torch


class Machine:
    """Some GPUs of one kind of the catalogue."""

    def __init__(self, gpu: str, gpus: int) -> None:
        if not isinstance(gpus, int) or isinstance(gpus, bool) or not 1 <= gpus <= 64:
            raise UsageError(f"gpus={gpus!r}: measure takes 1 to 64 GPUs")
        listed = _catalogue()
        found = [one for one in listed if one["name"] == gpu] or [one for one in listed if one["name"].startswith(f"{gpu}-")]
        if len(found) != 1:
            names = ", ".join(one["name"] for one in found or listed)
            raise UsageError(f"gpu={gpu!r}: {'several GPUs have this name' if found else 'no GPU has this name'}: {names}")
        capability = str(found[0]["compute_capability"])
        if capability.startswith("gfx"):
            raise UsageError(f"gpu={gpu!r}: measure knows the kernels of NVIDIA GPUs alone")
        self.name: str = found[0]["name"]
        self.count = gpus
        self.bytes: int = found[0]["usable_bytes"]
        major, minor = (int(part) for part in capability.split("."))
        self.capability = (major, minor)
        self.current = 0
        self.stream = 0


    @classmethod
    def of(cls, gpus: int) -> Machine:
        """GPUs of no kind, for what needs no sizes."""
        made = cls.__new__(cls)
        made.name, made.count, made.bytes, made.capability, made.current, made.stream = "GPU", gpus, 1 << 40, (9, 0), 0, 0
        return made


@functools.cache
def _catalogue() -> list[dict[str, Any]]:
    return list(json.loads(binary.run(["gpus", "--json"]).stdout)["gpus"])


class _Stream:
    """A stream that was made in the step. The allocator has a pool for each stream."""

    made = 0
    _machine: Any = None

    def __init__(self, device: Any = None, **_: Any) -> None:
        _Stream.made += 1
        self.device, self.number = torch.device("cuda", _index(self._machine, device)), _Stream.made
        self.cuda_stream = self.number

    def __enter__(self):
        self._before, self._machine.stream = self._machine.stream, self.number
        return self

    def __exit__(self, *_):
        self._machine.stream = self._before

    def query(self):
        return True

    def _nothing(self, *_, **__):
        return None

    wait_stream = wait_event = synchronize = _nothing

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()


class _Event:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def elapsed_time(self, _):
        return 1.0

    def query(self):
        return True

    def _nothing(self, *_, **__):
        return None

    record = wait = synchronize = _nothing


def _index(machine: Machine, device: Any) -> int:
    if device is None:
        return machine.current
    index = device if isinstance(device, int) else torch.device(device).index
    index = machine.current if index is None or index < 0 else index
    if index >= machine.count:
        raise DevmapError(f"cuda:{index} was asked for, and measure has gpus={machine.count}")
    return index


def _answers(machine: Machine, ledger: Any) -> dict[str, Any]:
    """The functions of torch.cuda that ask the driver, with what they answer here."""

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    def set_device(device):
        if device is not None and (device if isinstance(device, int) else 0) >= 0:
            machine.current = _index(machine, device)

    def exchange(device):
        before = machine.current
        if device >= 0:
            machine.current = _index(machine, device)
        return before

    @contextlib.contextmanager
    def stream(one):
        with one if isinstance(one, _Stream) else contextlib.nullcontext():
            yield

    default = SimpleNamespace(cuda_stream=0, device=torch.device("cuda", 0), **{name: constant(None) for name in ("wait_stream", "wait_event", "synchronize")}, record_event=lambda event=None: event or _Event(), query=constant(True))
    properties = SimpleNamespace(name=machine.name, major=machine.capability[0], minor=machine.capability[1], total_memory=machine.bytes, multi_processor_count=1, warp_size=32, is_integrated=0, L2_cache_size=0)
    state = torch.zeros(16, dtype=torch.uint8)
    return {
        "is_available": constant(True), "is_initialized": constant(True), "_lazy_init": constant(None), "init": constant(None),
        "device_count": constant(machine.count), "current_device": lambda: machine.current, "set_device": set_device,
        "_exchange_device": exchange, "_maybe_exchange_device": exchange, "synchronize": constant(None), "_sleep": constant(None), "is_current_stream_capturing": constant(False),
        "get_device_capability": constant(machine.capability), "get_device_name": constant(machine.name),
        "get_device_properties": constant(properties), "is_bf16_supported": constant(machine.capability[0] >= 8), "ipc_collect": constant(None),
        "get_rng_state": constant(state), "set_rng_state": constant(None), "get_rng_state_all": constant([state] * machine.count),
        "set_rng_state_all": constant(None), "manual_seed": constant(None), "manual_seed_all": constant(None), "seed": constant(None), "seed_all": constant(None),
        "Stream": type("Stream", (_Stream,), {"_machine": machine}), "Event": _Event, "stream": stream, "current_stream": constant(default), "default_stream": constant(default), "set_stream": constant(None),
        "empty_cache": ledger.empty_cache, "reset_peak_memory_stats": lambda device=None: ledger.reset(_index(machine, device)),
        "reset_max_memory_allocated": lambda device=None: ledger.reset(_index(machine, device)),
        "memory_allocated": lambda device=None: ledger.now[_index(machine, device)], "memory_reserved": lambda device=None: ledger.now[_index(machine, device)],
        "max_memory_allocated": lambda device=None: ledger.most[_index(machine, device)], "max_memory_reserved": lambda device=None: ledger.most[_index(machine, device)],
        "mem_get_info": lambda device=None: (machine.bytes - ledger.now[_index(machine, device)], machine.bytes),
    }  # fmt: skip


def _apply(module: torch.nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> torch.nn.Module:
    """Module._apply, which moves a module. A parameter stays the same object, as it does on a machine with a GPU: tied
    parameters stay tied, and an optimizer keeps its own."""
    if recurse:
        for child in module.children():
            child._apply(fn)
    for name, param in module._parameters.items():
        if param is None:
            continue
        with torch.no_grad():
            moved = fn(param)
        if moved is param:
            continue
        if isinstance(param, FakeTensor) and isinstance(moved, FakeTensor):
            _become(param, moved)
            if param.grad is not None:
                with torch.no_grad():
                    _become(param.grad, fn(param.grad))
        else:
            module._parameters[name] = torch.nn.Parameter(moved, param.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


def _become(tensor: Any, other: Any) -> None:
    tensor.data = other
    tensor.fake_device = other.fake_device


class _Idle(backend_registration._DummyPrivateUse1Hook):
    def has_primary_context(self, _):
        return False


@functools.cache
def _quiet() -> None:
    """Autograd asks the driver for the streams of the accelerator (torch/csrc/autograd/engine.cpp, stash_current_streams),
    which is an error without a driver. A backend of Python is the accelerator instead: ATen/DeviceAccelerator.cpp,
    getAccelerator, takes PrivateUse1 first. It stays so in this process."""
    torch._C._ensureCUDADeviceGuardSet()
    if torch.version.cuda is not None and torch.accelerator.current_accelerator() == torch.device("cuda"):
        torch.utils.rename_privateuse1_backend(IDLE)
        torch._register_device_module(IDLE, backend_registration._DummyBackendModule())  # type: ignore[arg-type]
        torch._C._acc.register_python_privateuseone_hook(_Idle())
        torch._C._acc.register_python_privateuseone_device_guard(backend_registration._DummyDeviceGuard())


def _to(tensor: Any, *args: Any, **options: Any) -> Any:
    """Tensor.to, where a number is a GPU: to C++ it is a device of the backend that idles."""

    def meant(one: Any) -> Any:
        if isinstance(one, int) and not isinstance(one, bool):
            return torch.device("cuda", one)
        return torch.device("cuda", one.index or 0) if isinstance(one, torch.device) and one.type == IDLE else one

    if "device" in options:
        options["device"] = meant(options["device"])
    return torch.Tensor.to(tensor, *(meant(one) for one in args[:1]), *args[1:], **options)


def _address(tensor: Any) -> int:
    """A number for each storage: libraries compare data_ptr() to find tied tensors. Kernels fail with it, as they should."""
    return tensor.untyped_storage()._cdata + tensor.storage_offset() * tensor.element_size()


def _formatted(tensor: Any, spec: str) -> str:
    """format() of a tensor of one value, as one logs it"""
    return format(tensor.item(), spec) if tensor.dim() == 0 else object.__format__(tensor, spec)


def _copied(tensor: Any, memo: dict) -> Any:
    """copy.deepcopy"""
    if id(tensor) not in memo:
        made = tensor.detach().clone()
        memo[id(tensor)] = torch.nn.Parameter(made, tensor.requires_grad) if getattr(tensor, "_is_param", False) else made.requires_grad_(tensor.requires_grad)
    return memo[id(tensor)]


def _indexing(name: str) -> Callable[..., Any]:
    """A method of Tensor that sets the driver's device (torch/csrc/autograd/python_variable_indexing.cpp), without that."""
    method = getattr(torch.Tensor, name)

    def indexed(tensor: Any, *args: Any, **options: Any) -> Any:
        mode = tensor.fake_mode
        if name != "__getitem__" and isinstance(args[-1], FakeTensor) and args[-1].fake_device != tensor.fake_device and (name == "copy_" or _plain(args[0])):
            args = (*args[:-1], args[-1].to(tensor.fake_device))  # copy_ moves it, and its gradient back
        before, mode.indexing, mode.ledger.last = mode.indexing, True, tensor.fake_device
        try:
            return method(tensor, *args, **options)
        except RuntimeError as error:
            if name != "copy_" or GUARD not in str(error):
                raise
            return tensor  # inside of another operation, where there is no data to copy
        finally:
            mode.indexing = before

    return indexed


def _plain(index: Any) -> bool:
    """Whether an index takes no tensors or lists, which is a view."""
    return all(one is None or one is Ellipsis or isinstance(one, (int, slice)) for one in (index if isinstance(index, tuple) else (index,)))


_new = FakeTensor.__new__


def _param(cls: Any, first: Any, *args: Any, **options: Any) -> Any:
    """type(param)(data), as Accelerate copies a parameter: the class of a fake parameter is FakeTensor."""
    if isinstance(first, torch.Tensor):
        return torch.nn.Parameter(first, options.get("requires_grad", True))
    return _new(cls, first, *args, **options)


class _Legacy:
    """torch.cuda.FloatTensor and its kin: a type that makes tensors on the GPU, of data or of a size."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __call__(self, *args: Any) -> Any:
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
        if all(isinstance(one, int) for one in sizes):
            return torch.empty(sizes or (0,), dtype=self.dtype, device="cuda")
        return torch.as_tensor(args[0]).to(self.dtype).to("cuda")


_LEGACY = {name: _Legacy(dtype) for name, dtype in {"Half": torch.half, "BFloat16": torch.bfloat16, "Float": torch.float, "Double": torch.double, "Bool": torch.bool, "Byte": torch.uint8, "Char": torch.int8, "Short": torch.short, "Int": torch.int, "Long": torch.long}.items()}  # fmt: skip


def _type(tensor: Any, kind: Any = None, *args: Any, **options: Any) -> Any:
    """Tensor.type, where a type of torch.cuda moves the tensor to the GPU."""
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        kind = _LEGACY.get(kind.removeprefix("torch.cuda.").removesuffix("Tensor"), kind)
    if isinstance(kind, _Legacy):
        return tensor.to("cuda", kind.dtype)
    return torch._C.TensorBase.type(tensor, *(() if kind is None else (kind,)), *args, **options)


class _OfTransformers(type):
    """Transformers takes other paths, which ask no data, for fake tensors: is_fake_tensor of its utils/import_utils.py. It sees
    none here, also if the step imports it. All others see them."""

    def __instancecheck__(cls, one):
        return isinstance(one, FakeTensor) and not str(sys._getframe(1).f_globals.get("__name__")).startswith("transformers.")

    def __subclasscheck__(cls, one):
        return issubclass(one, FakeTensor)


class _Unseen(metaclass=_OfTransformers):
    """torch._subclasses.FakeTensor in a step."""


@contextlib.contextmanager
def grouped() -> Iterator[None]:
    """torch._grouped_mm of any one type. Without data torch 2.11 takes bf16 alone; CUDA has one product a group for other
    types (aten/src/ATen/native/cuda/GroupedBlas.cpp, _grouped_mm_cuda and _grouped_mm_fallback), with rows of 16 bytes."""
    theirs = getattr(registered := sys.modules["torch._meta_registrations"], "_meta_grouped_mm_common", None)

    def common(mat_a: Any, mat_b: Any, scale_a: Any, scale_b: Any, offs: Any = None, *rest: Any, **named: Any) -> Any:
        if scale_a is not None or mat_a.dtype != mat_b.dtype or mat_a.dtype not in (torch.float32, torch.float16):
            return theirs(mat_a, mat_b, scale_a, scale_b, offs, *rest, **named)
        for one in (mat_a, mat_b):
            torch._check(max(one.stride()[-2:]) * one.element_size() % 16 == 0, lambda: f"a matrix of strides {one.stride()} has rows of no multiple of 16 bytes")
        return registered._create_grouped_mm_output_tensor(mat_a, mat_b, offs, None)

    with contextlib.nullcontext() if theirs is None else _swapped(registered, "_meta_grouped_mm_common", common):
        yield


@contextlib.contextmanager
def pretended(machine: Machine, ledger: Any, more: list[tuple[Any, str, Any]], alone: bool = False) -> Iterator[None]:
    """torch.cuda has the machine's GPUs in this block. more is what else has another value. alone: no code runs on a GPU
    in this process after it."""
    if not alone and torch.cuda.is_available():
        raise DevmapError("measure runs where torch sees no GPU: set CUDA_VISIBLE_DEVICES= before Python starts")
    _quiet()
    compiled = ledger.compiled
    swaps: list[tuple[Any, str, Any]] = [*more] + [(torch.cuda, name, value) for name, value in _answers(machine, ledger).items()]
    memory = {"empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "mem_get_info"}
    swaps += [(torch.cuda.memory, name, value) for owner, name, value in swaps if owner is torch.cuda and name in memory]
    swaps += [(torch.nn.Module, "_apply", _apply), (torch.Tensor, "pin_memory", lambda tensor, *_: tensor), (torch.Tensor, "record_stream", lambda *_: None)]
    swaps += [(torch.accelerator, "current_accelerator", lambda *_, **__: torch.device("cuda")), (torch.accelerator, "is_available", lambda: True), (torch.accelerator, "device_count", lambda: machine.count), (torch._C, "_get_accelerator", lambda *_: torch.device("cuda")), (torch.accelerator, "current_stream", lambda *_: torch.cuda.current_stream())]
    swaps += [(FakeTensor, "__new__", staticmethod(_param)), (FakeTensor, "to", _to), (FakeTensor, "numpy", lambda tensor, **_: ledger.numpy(tensor)), (FakeTensor, "__format__", _formatted), (FakeTensor, "data_ptr", _address), (FakeTensor, "__deepcopy__", _copied), *((FakeTensor, name, _indexing(name)) for name in ("__getitem__", "__setitem__", "copy_")), (torch.nn.RNNBase, "flatten_parameters", flatten)]
    swaps += [(torch.cuda, name + "Tensor", legacy) for name, legacy in _LEGACY.items()] + [(torch.Tensor, "type", _type)]
    swaps += [(torch.UntypedStorage, "resize_", lambda storage, size: ledger.resized(storage, size))]
    swaps += [(torch, "save", lambda *_, **__: None)]  # there is no data to write
    swaps += [(torch, "compile", compiled), (torch.nn.Module, "compile", lambda module, *_, **__: compiled(module) and None)]
    swaps += [(fake_tensor, name, lambda *_: None) for name in ("init_gpu_context", "init_cuda_context") if name in vars(fake_tensor)]
    # torch.optim has one kernel for lists of plain tensors on CUDA; fake ones are such here.
    kinds = _foreach_utils._foreach_supported_types
    swaps += [(one, "", FakeTensor) for one in {id(one): one for one in (kinds, sys.modules["torch.optim.optimizer"]._foreach_supported_types)}.values()]
    swaps += [(torch._subclasses, "FakeTensor", _Unseen)]
    with contextlib.ExitStack() as stack:
        for owner, name, value in swaps:
            stack.enter_context(_swapped(owner, name, value))
        stack.enter_context(grouped())
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        lifts = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device="cuda")
        stack.callback(torch._C._set_only_lift_cpu_tensors, lifts)
        yield


@contextlib.contextmanager
def _swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    if isinstance(owner, list):
        owner.append(value)
        try:
            yield
        finally:
            owner.remove(value)
        return
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
