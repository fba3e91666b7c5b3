"""Births and deaths of the storages of a step, in order."""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, override"

from __future__ import annotations

import contextlib
import math
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, UnsupportedOperatorException
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..errors import DevmapError
from . import convolutions, hidden, recurrent
from .machine import IDLE, Machine
from .places import Place, Places, line_of
from .values import UNANSWERED, Values, known, sized

_UNSEEN = (None, 0, 0)  # of a storage that is not followed
_SMALL = 64  # a tensor of the CPU with at most so many elements is real, a larger one has no data if it is made here
_MADE = frozenset("empty empty_strided zeros ones full rand randn normal empty_like zeros_like ones_like full_like rand_like randn_like".split())
WORKSPACE = "cuBLAS workspace"
# Operations that write into their first tensor and allocate nothing. They are not run: there is no data.
_IN_PLACE = frozenset("copy_ zero_ fill_ normal_ uniform_ add_ sub_ mul_ div_ addcmul_ addcdiv_ lerp_".split())


def _first_fake(args: Any, kwargs: Any) -> Any:
    """The device of the first fake tensor on a GPU, else of the first one on the CPU."""
    found = None
    for one in tree_leaves((args, kwargs)):
        if isinstance(one, FakeTensor):
            if one.fake_device.type == "cuda":
                return one.fake_device
            found = found or one.fake_device
    return found


def _sums_in_place(args: Any) -> bool:
    """Whether autograd's engine adds a gradient to another that it alone holds, which on a GPU is done in place
    (torch/csrc/autograd/input_buffer.cpp, accumulate and can_accumulate_inplace). A dispatch mode prevents that."""
    if torch.is_grad_enabled() or torch._C._current_autograd_node() is None or len(args) < 2 or not isinstance(args[1], FakeTensor):
        return False
    old = args[0]
    # The counts of a lone gradient: the engine's buffer and the calls up to here; its tensor and the handle that this asks for.
    alone = isinstance(old, FakeTensor) and old._use_count() <= 4 and torch._C._storage_Use_Count(old.untyped_storage()._cdata) == 2
    return alone and old.shape == args[1].shape and old.dtype == args[1].dtype and old.is_contiguous()


def _scatters_in_place(name: str, args: Any) -> bool:
    """Whether a derivative writes into zeros that it made itself, out of place for subclasses of Tensor alone
    (torch/csrc/autograd/FunctionsManual.cpp, areAnyTensorSubclassLike)."""
    if name not in ("scatter", "scatter_add", "index_add") or not isinstance(args[0], FakeTensor):
        return False
    node = torch._C._current_autograd_node()
    return node is not None and node.name().endswith("Backward0")


def _large(args: Any, kwargs: Any) -> bool:
    """Whether a factory makes a large tensor of fractions."""
    shape = args[0] if args else kwargs.get("size", ())
    if isinstance(shape, torch.Tensor):
        count, dtype = 0 if shape.is_meta else shape.numel(), shape.dtype
    else:
        count, dtype = math.prod(shape) if isinstance(shape, (list, tuple)) else 0, torch.get_default_dtype()
    return count > _SMALL and (kwargs.get("dtype") or dtype).is_floating_point


def device_of(tensor: Any, asking: Any) -> torch.device:
    """The device that C++ sees. Autograd's engine sees "meta": for CUDA it waits for streams (engine.cpp)."""
    if tensor.fake_mode.in_kernel_invocation or tensor.fake_mode.indexing or asking is not None and asking.f_code.co_name == "_engine_run_backward":
        return torch.device("meta")
    return tensor.fake_device


class _Fake(FakeTensorMode):
    """torch's fake mode, which never runs an operation on the GPU itself to know its value."""

    avoid_device_init = property(lambda _: True, lambda *_: None)  # type: ignore[assignment]
    ledger: Any = None
    indexing = False  # C++ indexes a tensor, and sets its device: FakeGuardImpl.h has 8 GPUs

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """As torch's, also for the operations that one is made of."""
        device = (kwargs or {}).get("device")
        if device is not None and torch.device(device).type == "meta" and not self.ledger.meta:
            kwargs = {**kwargs, "device": self.ledger.last}
        return super().dispatch(func, types, args, kwargs)


class Ledger(TorchDispatchMode):
    """Runs operations of GPUs on fake tensors, others as they are, and logs the storages of the GPUs.

    log has lists of whole numbers, the events of devmap.allocations/v1. places has the place of each birth.
    """

    even = False  # logs workspaces of no bytes too, so that steps of all sizes have the same events
    ruled = False  # the same for memory inside kernels that has a rule

    def __init__(self, machine: Machine, values: Values, places: Places) -> None:
        super().__init__()
        self.machine, self.values, self.places = machine, values, places
        self.fake = _Fake(allow_non_fake_inputs=True)
        self.fake.ledger = self
        self.log: list[list[int]] = []
        self.births: list[Place] = []
        self.sizes: list[int] = []
        self.refs: dict[int, tuple[Any, int, int]] = {}  # by a storage's address: it, the birth of its memory (0: it has none) and its GPU
        self.spaces: set[tuple[str, bool, int]] = set()
        self.doubts: dict[str, tuple[float, int]] = {}  # by what is said, the most that it may reach, and the GPU
        self.now, self.most = [0] * machine.count, [0] * machine.count
        self.alive: dict[int, tuple[int, int]] = {}
        self.operations: Counter = Counter()
        self.homes: dict[int, Any] = {}  # by the sequence number of autograd's node
        self.last = torch.device("cuda", 0)
        self.meta = False
        self.kept: dict[Any, Any] = {}  # states of cuDNN's dropout
        self.plans: set[Any] = set()  # convolutions that cuDNN's plans were tried for

    # What the functions of torch.cuda say to the allocator.

    def empty_cache(self, *_: Any) -> None:
        self.log += [[0, device, 0] for device in range(self.machine.count)]

    def reset(self, device: int) -> None:
        self.log.append([0, device, 1])
        self.most[device] = self.now[device]
        self.doubts = {said: doubt for said, doubt in self.doubts.items() if doubt[0] == math.inf or doubt[1] != device}

    def compiled(self, model: Any = None, **_: Any) -> Any:
        """torch.compile: the part runs as it is written."""
        line = line_of(sys._getframe(1))
        self.doubts[f"{line} compiles a part with torch.compile: it was measured as it runs without"] = math.inf, 0
        return (lambda one: one) if model is None else model

    def numpy(self, tensor: Any, **_: Any) -> Any:
        """Tensor.numpy of a tensor that was computed: zeros, as one logs or saves it."""
        import numpy

        line = line_of(sys._getframe(1))
        if tensor.fake_device.type != "cpu":
            raise TypeError(f"{line}: numpy() of a tensor on {tensor.fake_device}: use .cpu() first")
        self.values.assumed[line] = f"{line} reads a tensor of shape {list(tensor.shape)}: zeros were assumed"
        kinds = {torch.bfloat16: "float32"}
        return numpy.zeros(tuple(tensor.shape), kinds.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")))

    # Storages.

    def born(self, size: int, device: int, place: Place, inside: bool = False) -> int:
        self.births.append(place)
        self.sizes.append(size)
        number = len(self.births)
        more = [self.machine.stream, 1] if inside else [self.machine.stream] if self.machine.stream else []
        self.log.append([number, device, size, *more])
        rounded = max(512, -(-size // 512) * 512)
        self.alive[number] = device, rounded
        self.now[device] += rounded
        self.most[device] = max(self.most[device], self.now[device])
        return number

    def die(self, number: int) -> None:
        device, rounded = self.alive.pop(number)
        self.now[device] -= rounded
        self.log.append([-number])

    def track(self, tensor: Any, operation: str, least: int = 0) -> None:
        """Logs the storage of a tensor, which has at least least bytes, and its end."""
        storage, device = tensor.untyped_storage(), tensor.device.index or 0
        _, number, _ = self.refs.get(storage._cdata, _UNSEEN)
        if not number or number in self.alive and storage.nbytes() > self.sizes[number - 1]:  # Tensor.resize_ made it larger
            self.follow(storage, max(storage.nbytes(), least), device, operation)

    def follow(self, storage: Any, size: int, device: int, operation: str) -> None:
        """Logs the birth of a storage's memory, if it has any, then the end of what it had, and its own end once it is gone."""
        key = storage._cdata
        number = self.born(size, device, self.places.here(operation)) if size else 0
        _, before, _ = self.refs.get(key, _UNSEEN)

        def gone(_: Any, self: Ledger = self, key: int = key, number: int = number) -> None:
            if self.refs.get(key, _UNSEEN)[1] == number:
                del self.refs[key]
            if number in self.alive:
                self.die(number)

        self.refs[key] = weakref.ref(storage, gone), number, device
        if before in self.alive:
            self.die(before)

    def resized(self, storage: Any, size: int) -> Any:
        """UntypedStorage.resize_, with which FSDP frees gathered parameters and allocates them again."""
        before = storage.nbytes()
        made = torch._C.StorageBase.resize_(storage, size)
        if size != before and storage._cdata in self.refs:
            self.follow(storage, size, self.refs[storage._cdata][2], "resize_")
        return made

    def made_by(self, tensor: Any) -> str:
        """The operation that made a tensor's storage."""
        _, number, _ = self.refs.get(tensor.untyped_storage()._cdata, _UNSEEN)
        return self.births[number - 1].operation if number else ""

    # Operations.

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here; the guard takes time on every operation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:
            return device_of(args[0], sys._getframe(1))
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        first = _first_fake(args, kwargs)
        asked = kwargs.get("device")
        if asked is not None:
            by_number = asked.type == IDLE
            asked = self._asked(asked, first)
            kwargs = {**kwargs, "device": asked}
            if by_number and name == "_to_copy" and asked == first and kwargs.get("dtype", args[0].dtype) == args[0].dtype:
                return self.fake.dispatch(torch.ops.aten.alias.default, types, args)  # .to(0) of a tensor on cuda:0
        on = asked if asked is not None and asked.type == "cuda" else first
        if on is None:
            if not (name in _MADE and _large(args, kwargs) and (asked is None or asked.type == "cpu")):
                return func(*args, **kwargs)
            on = torch.device("cpu")
            kwargs = {**kwargs, "device": on}
        self._at_home(name, args, first or on)
        self.last = on
        if on.type != "cuda":
            return self._faked(func, name, types, args, kwargs)
        if on.index >= self.machine.count:
            raise DevmapError(f"measure: {line_of(sys._getframe(1))} uses cuda:{on.index}, and there are {self.machine.count} GPUs")
        if name in _IN_PLACE and isinstance(args[0], FakeTensor) or not func._schema.returns:
            return args[0] if func._schema.returns else None
        return self._on_gpu(func, name, types, args, kwargs, on.index)

    def _asked(self, asked: Any, first: Any) -> torch.device:
        """The device that an operation asks for. C++ copies it from a fake tensor as "meta": it is that of the forward in
        backward, else that of the tensor or of the last operation."""
        if asked.type == IDLE:  # a number: torch.device(0)
            asked = torch.device("cuda", self.machine.current if asked.index is None else asked.index)
        if asked.type == "meta" and not self.meta:
            node = torch._C._current_autograd_node()
            home = self.homes.get(node._sequence_nr()) if node is not None else None
            asked = home or first or self.last
        return torch.device("cuda", self.machine.current) if asked.type == "cuda" and asked.index is None else asked

    def _at_home(self, name: str, args: Any, device: Any) -> None:
        """Notes the device that gradients of this operation go to."""
        if torch.is_grad_enabled() and torch._C._current_autograd_node() is None:
            if name == "copy_" and isinstance(args[1], FakeTensor):
                device = args[1].fake_device
            self.homes.setdefault(torch.autograd._get_sequence_nr() - 1, device)  # autograd made the node just before

    @contextlib.contextmanager
    def asked_for_meta(self) -> Iterator[None]:
        """In this block, "meta" is the user's own word."""
        before, self.meta = self.meta, True
        try:
            yield
        finally:
            self.meta = before

    def _faked(self, func: Any, name: str, types: Any, args: Any, kwargs: Any) -> Any:
        if name in recurrent.CELLS:
            with self.fake:
                return recurrent.CELLS[name](*args, **(kwargs or {}))
        if name == "_index_put_impl_":  # C++ makes the tensor of a list of indices on "meta"
            args = args[0], [one if one is None or isinstance(one, FakeTensor) else self._empty(one.shape, one.dtype, args[0].fake_device) for one in args[1]], *args[2:]
        try:
            return self.fake.dispatch(func, types, args, kwargs)
        except UNANSWERED:
            line = line_of(sys._getframe(2))
            if name == "_local_scalar_dense":
                value = known(args[0], sys._getframe(2)) if line not in self.values.given else None
                return self.values.one(args[0], line, self.made_by(args[0])) if value is None else value
            return sized(self.values, name, args, kwargs, line, self._empty)
        except UnsupportedOperatorException as error:
            raise DevmapError(f"measure: {line_of(sys._getframe(2))} calls {error.func}, an extension whose memory torch's fake mode does not know: register a fake implementation (torch.library.register_fake)") from None

    def _empty(self, shape: Any, dtype: Any, device: Any) -> Any:
        with self.fake:
            return torch.empty(shape, dtype=dtype, device=device)

    def _on_gpu(self, func: Any, name: str, types: Any, args: Any, kwargs: Any, index: int) -> Any:
        self.operations[name] += 1
        parts = hidden.parts(func, name)
        if parts is not None:
            with self:
                return parts(*args, **kwargs)
        if name in hidden.PRODUCTS:
            self._workspace(name, args, index)
        if name == "_cudnn_rnn":
            return self._recurrent(args, index)
        if name == "_cudnn_rnn_backward":
            return self._recurrent_backward(args, index)
        if func is torch.ops.aten.add.Tensor and _sums_in_place(args) or _scatters_in_place(name, args):
            return args[0]
        inside = self._hidden(hidden.BEFORE, name, args, kwargs, index)
        out = self._faked(func, name, types, args, kwargs)
        if name in ("convolution", "convolution_backward") and self._convolved(name, args, out, index):
            return out
        least = args[0].nbytes if name in hidden.RESIZED else 0
        for tensor in tree_leaves(out):
            if isinstance(tensor, FakeTensor) and tensor.fake_device.type == "cuda":
                self.track(tensor, name, least)
        inside += self._hidden(hidden.AFTER, name, args, kwargs, index)
        self._doubt(func, name, args, index)
        for number in inside:
            self.die(number)
        return out

    def _new(self, shape: Any, like: Any, name: str, dtype: Any = None) -> Any:
        with self.fake:
            made = torch.empty(shape, dtype=dtype or like.dtype, device=like.fake_device)
        self.track(made, name)
        return made

    def _recurrent(self, args: Any, index: int) -> Any:
        """_cudnn_rnn: output, states, reserve and the weights in one buffer."""
        x, weights, _, flat, hx, cx, mode, hidden, project, layers, batch_first, dropout, train, both, sizes, _ = args
        size, name, place = recurrent.Sizes(x, weights, mode, hidden, project, layers, batch_first, dropout if train else 0, both, sizes), "_cudnn_rnn", self.places.here("inside _cudnn_rnn")
        inside = [self.born(x.nbytes, index, place, inside=True)] if size.copied else []
        shape = (x.shape[0], size.width) if sizes else (size.steps, size.batch, size.width)
        out, hy = self._new(shape, x, name), self._new(hx.shape, x, name)
        cy = self._new(cx.shape if cx is not None else (0,), x, name)
        kept = flat if flat is not None else self._new((size.weights,), x, name)
        inside.append(self.born(size.workspace, index, place, inside=True))
        reserve = self._new((size.reserve if train else 0,), x, name, torch.uint8)
        self._unsure(place, "part of cuDNN's workspace of a recurrent layer", size.workspace, index)
        for number in inside:
            self.die(number)
        with self.fake:
            return out.transpose(0, 1) if batch_first and not sizes else out, hy, cy, reserve, kept

    def _recurrent_backward(self, args: Any, index: int) -> Any:
        x, weights, _, _, hx, cx, out, _, _, _, mode, hidden, project, layers, batch_first, dropout, _, both, sizes, _, _, wanted = args
        size, name, place = recurrent.Sizes(x, weights, mode, hidden, project, layers, batch_first, dropout, both, sizes), "_cudnn_rnn_backward", self.places.here("inside _cudnn_rnn_backward")
        copy = [x.nbytes] if size.copied else []
        inside = [self.born(one, index, place, inside=True) for one in copy]
        dx = self._new(x.shape, x, name)
        dhx, dcx = self._new(hx.shape, x, name), self._new(cx.shape, x, name) if cx is not None else None
        inside.append(self.born(size.workspace, index, place, inside=True))
        for number in inside:
            self.die(number)
        if not wanted[3]:
            return dx, dhx, dcx, [None] * len(weights)
        inside = [self.born(one, index, place, inside=True) for one in copy]
        flat, grads, start = self._new((size.weights,), x, name), [], 0
        inside.append(self.born(size.workspace, index, place, inside=True))
        with self.fake:
            for one in weights:
                grads.append(flat[start : start + one.numel()].view(one.shape))
                start += one.numel()
        for number in inside:
            self.die(number)
        if not size.biases:  # the buffer has biases that no parameter is: each gradient is copied
            grads = [self._new(one.shape, x, name) for one in weights]
        return dx, dhx, dcx, grads

    def _convolved(self, name: str, args: Any, out: Any, index: int) -> bool:
        """Logs a convolution's memory in cuDNN's order; False if cuDNN does not say it."""
        if name == "convolution":
            results, taken = [out], convolutions.taken(self.machine.name, *args[:2], out, args[3:9])
        else:
            results, taken = list(out), convolutions.taken(self.machine.name, *args[1:3], args[0], args[4:10], args[0], args[10])
        if taken is not None and None in taken.spaces or not torch.backends.cudnn.enabled:
            return False
        place = self.places.here(f"inside {name}")
        copies = [self.born(size, index, place, inside=True) for size in taken.copies] if taken else []
        for number, tensor in enumerate(results):
            if tensor is not None:
                self.track(tensor, name)
            if taken is None or number >= len(taken.spaces):
                continue
            tried, space = taken.tried(number, self.plans), taken.spaces[number]
            if tried is not None:
                self.die(self.born(tried, index, place, inside=True))
                self.log.append([0, index, 0])
            if space or self.even:
                self.die(self.born(space or 1, index, place, inside=True))
                self._unsure(place, f"part of cuDNN's workspace ({name})", math.inf if torch.backends.cudnn.benchmark else space + convolutions.unsure(self.machine.name), index)
        for number in copies:
            self.die(number)
        return True

    def _doubt(self, func: Any, name: str, args: Any, index: int) -> None:
        """Notes memory inside an operation that no rule gives, while its results exist."""
        unknown, most = hidden.library(func, name), hidden.bound(name, args)
        if unknown or most:
            self._unsure(self.places.here(name), f"{unknown or 'memory inside a kernel'} ({name})", math.inf if unknown else most, index)

    def _unsure(self, place: Place, what: str, most: float, index: int) -> None:
        """Notes memory of at most so many bytes that is not followed, while what is followed exists."""
        said = f"{place.line or 'the step'} ({place.module or 'no module'}): {what} is not followed"
        self.doubts[said] = max(self.doubts.get(said, (0, index)), (self.now[index] + most, index))

    @property
    def unfollowed(self) -> list[str]:
        """What was not followed and may be part of a peak: memory with a bound that cannot reach the peak is none."""
        return [said for said, (high, device) in self.doubts.items() if high > self.most[device]]

    def _hidden(self, table: Any, name: str, args: Any, kwargs: Any, index: int) -> list[int]:
        sizes = table.get(name)
        if sizes is None:
            return []
        place = self.places.here(f"inside {name}")
        return [self.born(size, index, place, inside=True) for size in sizes(*args, **kwargs) if size or self.ruled and isinstance(size, hidden.Taken)]

    def _workspace(self, name: str, args: Any, index: int) -> None:
        """Each thread that multiplies has its own: the caller's, and autograd's for each GPU (CuBLASHandlePool.cpp)."""
        backward = torch._C._current_autograd_node() is not None
        whose = "backward" if backward else "forward"
        kinds = [(WORKSPACE, hidden.workspace_of)] + [("cuBLASLt workspace", hidden.lt_workspace_of)] * (name == "addmm" and args[0].dim() == 1)
        for kind, size in kinds:
            if (kind, backward, index) not in self.spaces:
                self.spaces.add((kind, backward, index))
                self.born(size(self.machine), index, Place("", "", whose, kind))
