"""Functions of torch that are made of others, and for which CUDA has a kernel of its own.

torch chooses by the device of a tensor in C++. That device is "meta" here (machine.py), so the choice is made here.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc"

from __future__ import annotations

import collections
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import attention, recurrent
from .events import Ledger


class Calls:
    """The kernels that CUDA takes. chosen counts those of attention."""

    def __init__(self, ledger: Ledger) -> None:
        self.machine = ledger.machine
        self.chosen: collections.Counter = collections.Counter()

    def swaps(self) -> list[tuple[Any, str, Any]]:
        """Every name of these functions in a module that is loaded, with what stands for it."""
        instead = {
            id(torch._C._nn.scaled_dot_product_attention): (torch._C._nn.scaled_dot_product_attention, self._attention),
        }
        found = [(torch._VF, name, functools.partial(recurrent.run, getattr(torch._C._VariableFunctions, name), name)) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
        found += [(torch.overrides, "has_torch_function", functools.partial(_watched, torch.overrides.has_torch_function)), (torch, "_transformer_encoder_layer_fwd", _encoder_layer)]
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if id(value) in instead:
                    function, ours = instead[id(value)]
                    found.append((module, name, functools.partial(ours, function)))
        return found

    def _attention(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not (args[0] if args else kwargs["query"]).is_cuda:
            return function(*args, **kwargs)
        to = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
        with contextlib.nullcontext() if to is None else torch.autocast("cuda", enabled=False):
            asked = attention.Asked(*(_lower(one, to) for one in args), **{name: _lower(one, to) for name, one in kwargs.items()})
            kernel = attention.choose(asked, self.machine)
            self.chosen[kernel] += 1
            return attention.run(asked, kernel)


def _watched(function: Callable[..., bool], tensors: Any) -> bool:
    """Whether functions of these tensors are watched, which the user's step does not do. An encoder layer without gradients and
    masks is one kernel there."""
    frame = sys._getframe(1)
    alone = frame.f_code is torch.nn.TransformerEncoderLayer.forward.__code__ and tensors[0].is_cuda
    return not (alone and frame.f_locals["src_mask"] is None and frame.f_locals["src_key_padding_mask"] is None) and function(tensors)


def _encoder_layer(src: Any, _: int, heads: int, qkv: Any, qkv_bias: Any, out: Any, out_bias: Any, __: bool, first: bool, eps: float, scale1: Any, shift1: Any, scale2: Any, shift2: Any, up: Any, up_bias: Any, down: Any, down_bias: Any, *___: Any) -> Any:
    """native/transformers/transformer.cpp, transformer_encoder_layer_forward: sums and the activation are in place."""
    functions = torch.nn.functional

    def normed(tensor: Any, scale: Any, shift: Any) -> Any:
        return functions.layer_norm(tensor, scale.shape, scale, shift, eps)

    def attended(tensor: Any) -> Any:
        parts = [one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in functions.linear(tensor, qkv, qkv_bias).chunk(3, -1)]
        return functions.linear(functions.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2), out, out_bias)

    hidden = attended(normed(src, scale1, shift1) if first else src).add_(src)
    hidden = hidden if first else normed(hidden, scale1, shift1)
    wide = functions.linear(normed(hidden, scale2, shift2) if first else hidden, up, up_bias)
    hidden = functions.linear(wide, down, down_bias).add_(hidden)
    return hidden if first else normed(hidden, scale2, shift2)


def _lower(value: Any, dtype: Any) -> Any:
    """cached_cast of ATen/autocast_mode.h: autocast lowers all tensors of attention before the kernel is chosen."""
    lowers = dtype is not None and isinstance(value, torch.Tensor) and value.is_cuda and value.is_floating_point() and value.dtype != torch.float64
    return value.to(dtype) if lowers else value


class Meta(TorchFunctionMode):
    """Notes that the code itself asks for the meta device. C++ asks for it where it copies the device of a fake tensor."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        device = (kwargs or {}).get("device")
        if device is not None and str(device).startswith("meta") or any(type(one) is torch.device and one.type == "meta" for one in args[1:3]):
            with self.ledger.asked_for_meta():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))
