"""Quantised linear layers of a module in memory: the data that they store, and a product in place of their kernels.

bitsandbytes keeps packed data in a parameter and its scales in attributes of it, torchao and quanto in the tensors that a
parameter is made of (__tensor_flatten__), HQQ in a dict of the module, GPTQ and AWQ in buffers. None of their kernels
runs on tensors without data.
"""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

from typing import Any

import torch

_PLAIN = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_DEPTH = 4  # bitsandbytes: weight.quant_state.state2.absmax


def sides(part: torch.nn.Module) -> tuple[int, int] | None:
    """Inputs and outputs of a linear layer, by the names that the libraries give them."""
    for names in (("in_features", "out_features"), ("infeatures", "outfeatures")):
        found = tuple(getattr(part, name, None) for name in names)
        if all(isinstance(one, int) and one > 0 for one in found):
            return found
    return None


def packed(part: torch.nn.Module) -> str | None:
    """The name of the tensor that holds a linear layer's matrix, if that is not a plain matrix."""
    size = sides(part)
    if size is None or any(True for _ in part.children()):
        return None
    own = {name: tensor for name, tensor in [*part._parameters.items(), *part._buffers.items()] if tensor is not None and name != "bias"}
    if not own:
        return None
    name = max(own, key=lambda one: own[one].numel() * own[one].element_size())
    tensor = own[name]
    plain = tensor.dtype in _PLAIN and tensor.numel() == size[0] * size[1]
    return None if plain or torch.nn.parameter.is_lazy(tensor) or tensor.dtype.is_complex else name


# What a sparse tensor stores: methods that give its parts.
_SPARSE = {
    torch.sparse_coo: ("_values", "_indices"), torch.sparse_csr: ("values", "crow_indices", "col_indices"), torch.sparse_csc: ("values", "ccol_indices", "row_indices"),
    torch.sparse_bsr: ("values", "crow_indices", "col_indices"), torch.sparse_bsc: ("values", "ccol_indices", "row_indices"),
}  # fmt: skip


def stored(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """What a registered tensor stores: the data, and under further names what it is scaled with."""
    if hasattr(tensor, "__tensor_flatten__") and type(tensor).__module__.partition(".")[0] != "torch":
        inner = _flat(tensor)
        if inner:
            inner.sort(key=lambda one: -one[1].numel() * one[1].element_size())
            return [("", inner[0][1]), *inner[1:]]
    if tensor.layout in _SPARSE:
        first, *more = _SPARSE[tensor.layout]
        return [("", getattr(tensor, first)()), *((f".{name.lstrip('_')}", getattr(tensor, name)()) for name in more)]
    seen = {_storage(tensor)}
    return [("", tensor), *(found for found in _inside(vars(tensor), seen, _DEPTH) if type(tensor) is not torch.nn.Parameter)]


def beside(part: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Tensors of a quantised layer that are not registered: HQQ's scales and zeros (hqq/core/quantize.py, HQQLinear.meta)."""
    if packed(part) is None:
        return []
    seen = {_storage(one) for tensor in [*part._parameters.values(), *part._buffers.values()] if tensor is not None for _, one in stored(tensor)}
    plain = {name: value for name, value in vars(part).items() if not name.startswith("_")}
    return [(name.lstrip("."), tensor) for name, tensor in _inside(plain, seen, _DEPTH)]


def _flat(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    names, _ = tensor.__tensor_flatten__()
    found = []
    for name in names:
        inner = getattr(tensor, name)
        deeper = _flat(inner) if hasattr(inner, "__tensor_flatten__") and type(inner).__module__.partition(".")[0] != "torch" else [("", inner)]
        found += [(f".{name}{more}", one) for more, one in deeper]
    return found


def _inside(values: dict[str, Any], seen: set, depth: int) -> list[tuple[str, torch.Tensor]]:
    """Tensors in attributes, and in the objects and dicts there, each storage once."""
    found: list[tuple[str, torch.Tensor]] = []
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            if _storage(value) not in seen:
                seen.add(_storage(value))
                found.append((f".{name}", value))
        elif depth and not isinstance(value, (torch.nn.Module, type)):
            inner = value if isinstance(value, dict) else getattr(value, "__dict__", None)
            if isinstance(inner, dict):
                found += [(f".{name}{more}", one) for more, one in _inside({str(key): one for key, one in inner.items()}, seen, depth - 1)]
    return found


def _storage(tensor: torch.Tensor) -> object:
    try:
        return tensor.untyped_storage()._cdata
    except (AttributeError, NotImplementedError, RuntimeError):
        return id(tensor)


def matrices(module: torch.nn.Module) -> dict[int, torch.nn.Parameter]:
    """For each packed tensor, by its id, a matrix without memory that takes its place."""
    floats: dict[torch.dtype, int] = {}
    for one in module.parameters():
        if one.dtype in _PLAIN:
            floats[one.dtype] = floats.get(one.dtype, 0) + one.numel()
    dtype = max(floats, key=floats.__getitem__) if floats else torch.bfloat16
    found = {}
    for part in module.modules():
        name = packed(part)
        if name is not None:
            width, out = sides(part)
            tensor = part._parameters.get(name)
            found[id(part._buffers[name] if tensor is None else tensor)] = torch.nn.Parameter(torch.empty((out, width), dtype=dtype, device="meta"), requires_grad=False)
    return found


def unpack(twin: torch.nn.Module, made: dict[int, torch.nn.Parameter]) -> None:
    """Lets the layers of a copy, whose packed tensors are matrices now, multiply with them."""
    matrices_ = {id(one) for one in made.values()}
    for part in twin.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in list(tensors.items()):
                if id(tensor) in matrices_:
                    del tensors[name]
                    part._parameters[name] = tensor
                    part.__dict__.pop("forward", None)
                    part._devmap_matrix = name
                    part.__class__ = type(type(part).__name__, (_Product,), {})  # a copy of it multiplies too


class _Product(torch.nn.Module):
    """A linear layer whose matrix has its packed tensor's name."""

    _devmap_matrix = "weight"

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        weight, bias = self._parameters[self._devmap_matrix], getattr(self, "bias", None)
        weight, bias = (one.to(x.dtype) if isinstance(one, torch.Tensor) and one.dtype != x.dtype else one for one in (weight, bias))
        return torch.nn.functional.linear(x, weight, bias)


def any_in(module: torch.nn.Module) -> bool:
    return any(packed(part) is not None or any(len(stored(one)) > 1 for one in part._parameters.values() if one is not None) for part in module.modules())
