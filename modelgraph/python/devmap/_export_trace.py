"""One forward on tensors without memory, call by call."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

from ._export_kernels import kernel
from ._export_values import ASKS, Unseen, Values


@dataclasses.dataclass
class Step:
    """A call of a torch function: which tensors went in and came out, by number."""

    name: str
    scope: str  # path of the module whose forward made the call
    inputs: list[int]
    outputs: list[int]
    arguments: tuple
    keywords: dict
    saved: list[int] = dataclasses.field(default_factory=list)  # storages that autograd keeps for it


@dataclasses.dataclass
class Call:
    """A call of a module."""

    path: str
    first: int  # steps [first, end)
    end: int
    inputs: list[int]
    outputs: list[int]
    kinds: dict[str, int] = dataclasses.field(default_factory=dict)  # outputs by the name that the result gives them


class Trace(TorchFunctionMode):
    """Records steps while it is active. Tensors stay alive, so that no number is given twice."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.tensors: list[torch.Tensor] = []
        self.maker: dict[int, int] = {}  # tensor to the step that made it
        self.failed: dict[str, str] = {}  # module path to why its forward was not seen
        self.modules: dict[str, torch.nn.Module] = {}
        self.guessed: dict[str, str] = {}  # module path to the line that asked for what nothing says
        self.values = Values()
        self.sizes: dict[object, int] = {}  # bytes of a storage
        self._number: dict[int, int] = {}
        self._scopes: list[str] = [""]
        self._current: Step | None = None
        self.parameters: dict[int, list[str]] = {}  # all names of each
        self._known: set = set()
        for name, tensor in module.named_parameters(remove_duplicate=False):
            self.parameters.setdefault(self.number(tensor), []).append(name)
            self._known.add(storage_of(tensor))
        for tensor in module.buffers():
            self._known.add(storage_of(tensor))

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor; a new one where it was not seen."""
        key = id(tensor)
        if key not in self._number:
            self._number[key] = len(self.tensors)
            self.tensors.append(tensor)
        return self._number[key]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ASKS:
            return self._ask(func, name, args, kwargs)
        if name in _PROPERTIES or name == "__get__" and not _is_view(func):
            return func(*args, **kwargs)
        if name == "__get__":
            name = "t"
        step = Step(name.strip("_"), self._scopes[-1], self._numbers((args, kwargs)), [], args, kwargs)
        before, self._current = self._current, step
        try:
            result = (kernel(name) or func)(*args, **kwargs)
        finally:
            self._current = before
        outputs = self._numbers(result)
        if outputs:
            self.values.follow(func, args, kwargs, result)
            step.outputs = outputs
            for number in outputs:
                if number not in step.inputs or name.endswith("_"):
                    self.maker[number] = len(self.steps)
            self.steps.append(step)
        return result

    def _ask(self, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """The value of a tensor. A condition that nothing decides holds, and is noted."""
        value = self.values.of(args[0])
        if value is not None:
            return func(value, *args[1:], **kwargs)
        if args[0].device.type != "meta":
            return func(*args, **kwargs)
        frame = sys._getframe(2)
        line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        if name == "__bool__":
            self.guessed.setdefault(self._scopes[-1], line)
            return True
        raise Unseen(f"{line} asks for the value of a tensor ({name.strip('_')})")

    def _numbers(self, value: Any) -> list[int]:
        return [self.number(tensor) for tensor in tensors_in(value)]

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Notes what autograd saves for the step that runs: storages, once each; a parameter is there anyway."""
        key = storage_of(tensor)
        if key not in self._known and self._current is not None:
            if key not in self.sizes:
                self.tensors.append(tensor)
                self.sizes[key] = tensor.untyped_storage().nbytes()
            if key not in self._current.saved:
                self._current.saved.append(key)
        return tensor

    @contextlib.contextmanager
    def inside(self, path: str):
        self._scopes.append(path)
        try:
            yield
        finally:
            self._scopes.pop()

    def called(self, path: str, first: int, args: Any, result: Any) -> None:
        """Notes a module's call; what came out of nowhere came from what went in."""
        inputs, outputs = self._numbers(args), self._numbers(result)
        for number in outputs:
            if number not in self.maker and number not in inputs and number not in self.parameters:
                self.maker[number] = len(self.steps)
                self.steps.append(Step("call", path, inputs, [number], (), {}))
        self.calls.append(Call(path, first, len(self.steps), inputs, outputs, _names(result, self)))


def _is_view(func: Callable) -> bool:
    return any(func is getattr(torch.Tensor, name).__get__ for name in ("T", "mT"))


def _names(result: Any, trace: Trace) -> dict[str, int]:
    if not hasattr(result, "items"):
        return {}
    return {str(name): trace.number(value) for name, value in result.items() if isinstance(value, torch.Tensor)}


def storage_of(tensor: torch.Tensor) -> int:
    """A storage's identity, which it has on the meta device too."""
    return tensor.untyped_storage()._cdata


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists, dicts and objects of frameworks (ModelOutput is a dict)."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for one in value for tensor in tensors_in(one)]
    return []


_PROPERTIES = frozenset(
    "size dim numel stride is_contiguous element_size storage_offset data_ptr nelement __len__ is_floating_point "
    "is_complex get_device".split()
)
