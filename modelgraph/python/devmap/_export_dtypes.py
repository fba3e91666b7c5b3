"""Tensors as model.json writes them."""

from __future__ import annotations

import torch

from ._errors import DevmapError

# torch's name of a type to the short one of model.json (modelgraph/dtype.go), where they differ.
_SHORT = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e8m0fnu": "f8_e8m0",
    "qint8": "i8",
    "quint8": "u8",
    "qint32": "i32",
}
_KNOWN = frozenset(_SHORT.values()) | {"bool", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2"}


def short(dtype: torch.dtype) -> str:
    """The name of a type in model.json."""
    name = str(dtype).replace("torch.", "")
    name = _SHORT.get(name, name)
    if name.endswith("fnuz"):
        name = name.replace("float8", "f8")
    return name


def entry(name: str, tensor: torch.Tensor) -> dict:
    """A tensor of a layer; the shape of one that is spread over devices (DTensor) is the whole's."""
    dtype = short(tensor.dtype)
    if dtype not in _KNOWN and not dtype.startswith("f8_"):
        raise DevmapError(f"export: {name!r} is of type {str(tensor.dtype)!r}, which model.json has no name for")
    return {"name": name, "shape": [int(side) for side in tensor.shape], "dtype": dtype}
