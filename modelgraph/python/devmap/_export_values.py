"""Values of tensors that follow from the inputs alone, while all others have none.

A forward on the meta device cannot ask a tensor for its value. Most that ask do so of tensors that are made of the
inputs and of constants (lengths, positions, masks, grids of patches): of these, as far as they are small, the same
calls are made on the CPU too. What asks for others (a router's choice, a stopping rule) is data-dependent.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

# A tensor of more elements has no value here: masks of short sequences stay below.
LIMIT = 1 << 16

ASKS = frozenset("__bool__ item tolist __int__ __float__ __index__ numpy __contains__".split())
_RANDOM = frozenset("bernoulli dropout rand_like randn_like normal_ uniform_ multinomial random_ bernoulli_".split())


class Unseen(RuntimeError):
    """The value of a tensor was asked for and nothing says it."""


class Values:
    """Values by the id of the tensor without one; the trace keeps those tensors alive."""

    def __init__(self) -> None:
        self._of: dict[int, torch.Tensor] = {}

    def give(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        if value.numel() <= LIMIT:
            self._of[id(tensor)] = value.detach().to("cpu")

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        return self._of.get(id(tensor))

    def follow(self, func: Callable, args: tuple, kwargs: dict, result: Any) -> None:
        """Makes the call on values, where all that goes in has one."""
        if getattr(func, "__name__", "") in _RANDOM:
            return
        outputs = list(_leaves(result))
        if (
            not outputs
            or sum(one.numel() for one in outputs) > LIMIT
            or any(one.is_floating_point() and one.dim() > 2 for one in outputs)
        ):
            return
        try:
            with torch.no_grad(), torch.device("cpu"):
                real = func(*self._real(args), **self._real(kwargs))
        except Exception:  # noqa: BLE001 - no value then, which is what most tensors have
            return
        for tensor, value in zip(outputs, _leaves(real)):
            self._of[id(tensor)] = value

    def _real(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._of[id(value)]  # KeyError: it has none
        if isinstance(value, torch.device) and value.type == "meta" or isinstance(value, str) and value == "meta":
            return "cpu"
        if isinstance(value, dict):
            return {key: self._real(one) for key, one in value.items()}
        if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
            return type(value)(self._real(one) for one in value)
        return value


def _leaves(value: Any):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _leaves(one)
