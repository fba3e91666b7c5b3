"""The calls of a forward as a graph of tensors."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import dataclasses
from typing import Callable

import torch

from .forward import Step, Trace

# A part of a model that devmap has an operation for.


@dataclasses.dataclass
class Part:
    """An operation, its steps, and its place in the module tree."""

    path: str  # the module that holds it, which gives the layer its name
    op: dict
    steps: set[int]
    params: set[str]  # full names of its parameters
    main: int  # the tensor that it transforms
    more: list[int] = dataclasses.field(default_factory=list)  # others that it reads: an encoder's output
    tokens: int = 0  # rows that it works on
    runs: int = 1  # how often the same parameters run
    shared: bool = False  # the rows are of one sequence, for all of the batch


# Who made a tensor and who reads it, over the steps of a trace.

# Steps whose result is the same numbers, or some of them, in another shape or type.
SAME = frozenset(
    "view reshape transpose contiguous to type type_as float half bfloat16 double getitem unsqueeze squeeze expand "
    "permute flatten unflatten chunk split unbind clone detach movedim narrow select expand_as repeat_interleave "
    "repeat t mT T swapaxes swapdims view_as reshape_as split_with_sizes tensor_split index_select pad roll dropout "
    "alpha_dropout detach_ requires_grad slice _unsafe_view alias _to_copy lift_fresh_copy".split()
)
PRODUCTS = frozenset("linear addmm matmul mm bmm baddbmm einsum grouped_mm rmatmul _grouped_mm".split())
_SCALINGS = frozenset("mul rmul div truediv tanh clamp".split())
CONVOLUTIONS = frozenset("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())


class Flow:
    """Steps by the tensors between them."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.steps = trace.steps
        self.readers: dict[int, list[int]] = {}
        for index, step in enumerate(trace.steps):
            for number in set(step.inputs):
                self.readers.setdefault(number, []).append(index)
        self._weights: dict[int, str | None] = {}
        self._names = {names[0]: names for names in trace.parameters.values()}

    def tensor(self, number: int) -> torch.Tensor:
        return self.trace.tensors[number]

    def shape(self, number: int) -> list[int]:
        return list(self.tensor(number).shape)

    def weight(self, number: int) -> str | None:
        """The parameter that a tensor is, or is a view or a cast of, by its first name; 1 + weight is one too."""
        if number in self.trace.parameters:
            return self.trace.parameters[number][0]
        if number not in self._weights:
            self._weights[number] = None  # a tensor that is read in place has itself before it
            at = self.trace.maker.get(number)
            step = self.steps[at] if at is not None else None
            if step is not None and (step.name in SAME or step.name in ("add", "radd", "exp", "neg")):
                names = {self.weight(one) for one in step.inputs}
                if len(names) == 1:
                    self._weights[number] = names.pop()
        return self._weights[number]

    def whole(self, number: int) -> list[int]:
        """The shape of the parameter that a tensor is, or is rows of."""
        name, shape = self.weight(number), self.shape(number)
        found = next((self.shape(one) for one, names in self.trace.parameters.items() if names[0] == name), shape)
        return found if len(found) > 1 and found[-1] == shape[-1] else shape

    def data(self, step: Step) -> list[int]:
        """The inputs that are no parameters."""
        return [number for number in step.inputs if self.weight(number) is None]

    def matrix(self, step: Step) -> str | None:
        """The weight that a step multiplies with, where it is a linear layer."""
        if step.name not in PRODUCTS:
            return None
        for number in step.inputs:
            name = self.weight(number)
            if name is not None and len(self.shape(number)) >= 2:
                return name
        return None

    def params(self, step: Step) -> list[str]:
        """All parameters that a step reads; of a tied one the name that it has where the step is."""
        found = []
        for name in map(self.weight, step.inputs):
            if name is not None:
                names = self._names[name]
                found.append(next((one for one in names if within(one, step.scope)), name))
        return found

    def width_in(self, step: Step) -> int:
        return self.shape(self.main(step))[-1]

    def width_out(self, step: Step) -> int:
        return self.shape(step.outputs[0])[-1]

    def main(self, step: Step) -> int:
        """The tensor that a step transforms."""
        data = self.data(step)
        return data[0] if data else step.inputs[0]

    def back(self, numbers: list[int], stop: Callable[[int], bool]) -> set[int]:
        """The steps behind tensors, up to those where stop says so, which are in it."""
        seen: set[int] = set()
        queue = list(numbers)
        while queue:
            number = queue.pop()
            at = self.trace.maker.get(number)
            if at is None or at in seen:
                continue
            seen.add(at)
            if not stop(at):
                queue.extend(self.data(self.steps[at]))
        return seen

    def ahead(self, numbers: list[int], stop: Callable[[int], bool]) -> set[int]:
        """The steps that tensors reach, up to those where stop says so, which are in it."""
        seen: set[int] = set()
        queue = list(numbers)
        while queue:
            for at in self.readers.get(queue.pop(), ()):
                if at in seen:
                    continue
                seen.add(at)
                if not stop(at):
                    queue.extend(self.steps[at].outputs)
        return seen

    def plain(self, number: int) -> int:
        """The tensor before views and casts."""
        for _ in range(len(self.steps)):
            at = self.trace.maker.get(number)
            if at is None or self.steps[at].name not in SAME or len(self.data(self.steps[at])) != 1:
                break
            before = self.data(self.steps[at])[0]
            if before == number:
                break
            number = before
        return number

    def straight(self, number: int | None) -> list[int]:
        """The steps from a tensor back to the linear layer that made it, which is the last; none where something else
        than views, casts, scalings and biases is between."""
        way: list[int] = []
        while number is not None and len(way) < 64:
            at = self.trace.maker.get(number)
            if at is None:
                return []
            way.append(at)
            step = self.steps[at]
            if self.matrix(step) is not None:
                return way
            data = self.data(step)
            if step.name in ("add", "radd"):  # a bias of the vocabulary (BART)
                data = [one for one in data if self.tensor(one).numel() == self.tensor(number).numel()]
                if len(data) != 1 or len(self.data(step)) > 2:
                    return []
            elif step.name not in SAME | _SCALINGS or not data:
                return []
            number = data[0]
        return []

    def readers_of(self, number: int) -> list[int]:
        """The steps that read a tensor, through views and casts."""
        ahead = self.ahead([number], lambda at: self.steps[at].name not in SAME)
        return sorted(at for at in ahead if self.steps[at].name not in SAME)


def within(path: str, module: str) -> bool:
    """Whether a path is a module's or below it."""
    return module == "" or path == module or path.startswith(module + ".")


def common(paths) -> str:
    """The deepest module that holds all paths."""
    parts = [path.split(".") if path else [] for path in paths]
    out: list[str] = []
    for names in zip(*parts):
        if len(set(names)) > 1:
            break
        out.append(names[0])
    return ".".join(out)
