"""Questions that code asks of data: .item(), bool(), nonzero(). A step without data cannot answer them.

A truth and a fraction are assumed, and the answer says which. A whole number and a count may decide sizes: their line
must be given in values.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from ..errors import DevmapError

Value = Union[bool, int, float, Callable[[Any], Any]]
UNANSWERED = (DataDependentOutputException, DynamicOutputShapeException)

# Truths that healthy training gives, by the operation that made the tensor; all others are True.
_FALSE = frozenset("any isnan isinf logical_not ne ne_ gt lt".split())
_MOST = 10_000  # times that one line may ask, as one in a step for each parameter does


class Values:
    """The answers: those that the user gave by line, and those that were assumed."""

    def __init__(self, given: Optional[Mapping[str, Value]]) -> None:
        self.given = dict(given or {})
        self.used: set[str] = set()
        self.asked: dict[str, int] = {}  # lines that ask for a truth, and how often
        self.assumed: dict[str, str] = {}

    def _given(self, line: str, tensor: Any) -> Any:
        value = self.given.get(line)
        if value is not None:
            self.used.add(line)
            return value(tensor) if callable(value) else value
        return None

    def one(self, tensor: Any, line: str, made_by: str) -> Any:
        """The value of a tensor of one element."""
        value = self._given(line, tensor)
        if value is not None:
            return value
        if tensor.dtype == torch.bool:
            value = made_by not in _FALSE
            self.asked[line] = self.asked.get(line, 0) + 1
            if self.asked[line] > _MOST:
                raise DevmapError(f"measure: {line} asks for the truth of data more than {_MOST} times, a loop without an end here: give it with values={{{line!r}: False}}")
        elif tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            value = 1.0
        else:
            raise DevmapError(
                f"measure: {line} reads a whole number from the GPU, which may decide sizes: "
                f"give it with values={{{line!r}: 128}}"
            )
        self.assumed[line] = f"{line} reads a value from the GPU: {value} was assumed"
        return value

    def count(self, operation: str, tensor: Any, line: str) -> int:
        """How many elements an operation finds."""
        value = self._given(line, tensor)
        if value is None:
            raise DevmapError(
                f"measure: the result of {operation} at {line} has a size that depends on data: "
                f"give the number of elements that it finds with values={{{line!r}: {max(1, tensor.numel() // 2)}}}"
            )
        return max(0, int(value))


def known(tensor: Any, frame: Any) -> Any:
    """What code in the frame gets for a tensor of one element if it needs no data; None elsewhere."""
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in ("torch", "devmap"):
        if frame.f_code.co_name == "_maybe_opt_step":  # no gradient is infinite: the optimizer's step runs (torch/amp/grad_scaler.py)
            return 0.0
        frame = frame.f_back
    return _at_last_token(frame) if tensor.dtype == torch.bool else None


def _at_last_token(frame: Any) -> Optional[bool]:
    """Whether Transformers' loop has made all tokens, where it asks the GPU for that; None elsewhere. The prompt's length and
    generation_config say so, with no sequence that ends before (generation/utils.py, _sample)."""
    if frame is None or frame.f_globals.get("__name__") != "transformers.generation.utils":
        return None
    while frame is not None and frame.f_code.co_name != "_sample":
        frame = frame.f_back
    ids, config = (frame.f_locals.get(name) for name in ("input_ids", "generation_config")) if frame is not None else (None, None)
    return None if ids is None or getattr(config, "max_length", None) is None else ids.shape[-1] >= config.max_length


def sized(values: Values, name: str, args: Any, kwargs: Any, line: str, empty: Callable[..., Any]) -> Any:
    """The result of an operation whose size depends on data. empty makes a fake tensor like another one."""
    tensor = args[0]
    if name in ("nonzero", "argwhere"):
        return empty((tensor.dim(), values.count(name, tensor, line)), torch.long, tensor.device).t()
    if name == "masked_select":
        return empty((values.count(name, args[1], line),), tensor.dtype, tensor.device)
    if name == "repeat_interleave" and len(args) == 1:
        return empty((values.count(name, tensor, line),), torch.long, tensor.device)
    if name == "bincount":
        least = kwargs.get("minlength") or (args[2] if len(args) > 2 else 0)  # numbers of experts: that of all is given
        return empty((least or values.count(name, tensor, line),), torch.long, tensor.device)
    if name in ("_unique2", "_unique"):
        count = values.count(name, tensor, line)
        found = [empty((count,), tensor.dtype, tensor.device), empty(tensor.shape, torch.long, tensor.device)]
        return tuple(found + [empty((count,), torch.long, tensor.device)] * (name == "_unique2"))
    if name == "index":
        return _indexed(values, tensor, args[1], line, empty)
    raise DevmapError(f"measure: {line}: the size of the result of {name} depends on data, and no rule follows it")


def _indexed(values: Values, tensor: Any, indices: Any, line: str, empty: Callable[..., Any]) -> Any:
    found: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            count = values.count("an index of booleans", index, line)
            found += [empty((count,), torch.long, tensor.device) for _ in range(index.dim())]
        else:
            found.append(index)
    return torch.ops.aten.index.Tensor(tensor, found)
