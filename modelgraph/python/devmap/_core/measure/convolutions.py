"""cuDNN's workspace of a convolution, by cuDNN itself: it plans without a GPU for a device that is described (since 9.8).

torch (aten/src/ATen/native/cudnn/Conv_v8.cpp, run_single_conv) asks cuDNN's heuristics for configurations, and runs the
first that makes a plan. The same is asked here of the cuDNN that torch has loaded, so the answer is that of its version.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import ctypes
import functools
import json
import math
import sys
from typing import Any, Optional

import torch

MULTIPROCESSORS = 132  # of an H200
# As cuDNN itself describes the GPU (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, read on an H200 with cuDNN 9.19).
_H200 = {
    "deviceVer": 900, "multiProcessorCount": MULTIPROCESSORS, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 6, "isTccDriver": 0, "supportCoopLaunch": 1,
    "totalGlobalMem": 150109880320, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0, "driverVer": 13000, "deviceName": "NVIDIA H200",
}  # fmt: skip
DEVICES = {"h200-141gb": _H200}

# cudnn_graph.h: kinds of descriptors, types and attributes.
_CONVOLUTION, _ENGINE, _CONFIG, _HEURISTICS, _PLAN, _GRAPH, _TENSOR, _DEVICE = 1, 2, 3, 4, 5, 15, 17, 38
FORWARD, WEIGHT, INPUT = 10, 11, 12  # operations
_DTYPE, _INT64, _FLOAT, _MODE, _HEURISTIC, _NOTE, _DESCRIPTOR, _CHAR = 1, 3, 4, 7, 8, 11, 15, 24
_DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 9}
_ATTRIBUTES = {FORWARD: (702, 703, 704, 705, 700, 701), WEIGHT: (714, 715, 716, 717, 712, 713), INPUT: (708, 709, 710, 711, 706, 707)}
_TENSOR_CORE, _DOWN_CONVERT = 0, 1  # numerical notes
_C_TYPES = {_INT64: ctypes.c_int64, _FLOAT: ctypes.c_float, _DESCRIPTOR: ctypes.c_void_p}


class _Refused(Exception):
    """cuDNN gave a status other than success."""


@functools.cache
def _library() -> Any:
    try:
        found = ctypes.CDLL("libcudnn.so.9")
        return found if torch.backends.cudnn.is_available() or torch.version.cuda else None
    except OSError:
        return None


def _call(name: str, *args: Any) -> None:
    if getattr(_library(), name)(*args):
        raise _Refused(name)


def _made(kind: int, *attributes: tuple[int, int, Any], kept: list[Any], whole: bool = True) -> Any:
    """A descriptor. kept holds it until all that uses it is done."""
    made = ctypes.c_void_p()
    _call("cudnnBackendCreateDescriptor", kind, ctypes.byref(made))
    kept.append(made)
    for attribute, kind_of, values in attributes:
        array = values if kind_of == _CHAR else (_C_TYPES.get(kind_of, ctypes.c_int) * len(values))(*values)
        _call("cudnnBackendSetAttribute", made, attribute, kind_of, ctypes.c_int64(len(values)), array)
    if whole:
        _call("cudnnBackendFinalize", made)
    return made


def _read(descriptor: Any, attribute: int, kind: int, array: Any) -> int:
    count = ctypes.c_int64()
    _call("cudnnBackendGetAttribute", descriptor, attribute, kind, ctypes.c_int64(len(array)), ctypes.byref(count), array)
    return count.value


def _notes(config: Any, kept: list[Any]) -> list[int]:
    engine = _made(_ENGINE, kept=kept, whole=False)
    _read(config, 300, _DESCRIPTOR, (ctypes.c_void_p * 1)(engine))
    notes = (ctypes.c_int * 16)()
    return list(notes[: _read(engine, 1303, _NOTE, notes)])


@functools.cache
def workspace(gpu: str, operation: int, dtype: torch.dtype, shapes: tuple, strides: tuple, padding: tuple, stride: tuple, dilation: tuple, tf32: bool, most: bool = False) -> Optional[int]:
    """The workspace's bytes, with most the largest of all plans; None if cuDNN does not say. shapes and strides are those of the weight, the input and the output."""
    if _library() is None or gpu not in DEVICES or dtype not in _DTYPES:
        return None
    (weight, small, _), parts = shapes, sys.maxsize
    if math.prod(weight[2:]) == 1 == math.prod(stride) and not any(padding) and weight[1] == small[1] and small[0] > 1:
        # A product of matrices, which cuDNN leaves to cuBLAS: it does not plan it without a GPU. The weight's gradient then
        # has a part in fp32 for each image; cuDNN takes its own plan where that has less (50 operations on an H200).
        if operation != WEIGHT:
            return 0
        parts = 4 * small[0] * math.prod(weight) if strides[1][1] == math.prod(small[2:]) else parts
    kept: list[Any] = []
    try:
        found = _first(json.dumps(DEVICES[gpu]).encode(), operation, dtype, shapes, strides, padding, stride, dilation, tf32, most, kept)
        return None if found is None else found if most else min(found, parts)
    except _Refused:
        return None
    finally:
        for one in reversed(kept):
            _library().cudnnBackendDestroyDescriptor(one)


def _first(gpu: bytes, operation: int, dtype: torch.dtype, shapes: Any, strides: Any, padding: Any, stride: Any, dilation: Any, tf32: bool, most: bool, kept: list[Any]) -> Optional[int]:
    device = _made(_DEVICE, (2702, _CHAR, gpu), kept=kept)
    computed = [1 if dtype == torch.float64 else 0]  # fp32 also for 16 bits
    convolution = _made(
        _CONVOLUTION, (100, _DTYPE, computed), (101, _MODE, [1]), (106, _INT64, [len(stride)]), (105, _INT64, padding), (104, _INT64, padding),
        (102, _INT64, dilation), (103, _INT64, stride), kept=kept)  # fmt: skip
    tensors = [
        _made(_TENSOR, (901, _DTYPE, [_DTYPES[dtype]]), (902, _INT64, shape), (903, _INT64, steps), (906, _INT64, [number]), (900, _INT64, [32]), kept=kept)
        for number, (shape, steps) in enumerate(zip(shapes, strides), 1)
    ]
    names = _ATTRIBUTES[operation]
    made = _made(operation, *((name, _DESCRIPTOR, [one]) for name, one in zip(names, (convolution, *tensors))), (names[4], _FLOAT, [1.0]), (names[5], _FLOAT, [0.0]), kept=kept)
    graph = _made(_GRAPH, (801, _DESCRIPTOR, [made]), kept=kept)
    found: list[int] = []
    for mode in (0, 2):  # CUDNN_HEUR_MODE_INSTANT, then CUDNN_HEUR_MODE_FALLBACK
        asked = _made(_HEURISTICS, (201, _DESCRIPTOR, [graph]), (200, _HEURISTIC, [mode]), (204, _DESCRIPTOR, [device]), kept=kept)
        configs = [_made(_CONFIG, kept=kept, whole=False) for _ in range(64)]
        count = _read(asked, 202, _DESCRIPTOR, (ctypes.c_void_p * len(configs))(*configs))
        for config in configs[:count]:
            notes = _notes(config, kept)
            if _DOWN_CONVERT in notes or dtype == torch.float32 and not tf32 and _TENSOR_CORE in notes:  # filterEngineConfigs
                continue
            try:
                plan = _made(_PLAN, (401, _DESCRIPTOR, [config]), (407, _DESCRIPTOR, [device]), kept=kept)
            except _Refused:
                continue
            size = (ctypes.c_int64 * 1)()
            _read(plan, 402, _INT64, size)
            found.append(size[0])
            if not most:
                return size[0]
    return max(found, default=None)


class Taken:
    """What a convolution allocates: copies of its arguments first, then a workspace for each result, None if unknown. tried
    has the largest of all plans, which torch.backends.cudnn.benchmark runs the first time."""

    def __init__(self, copies: list[int], asked: list[Any]) -> None:
        self.copies, self.keys = copies, asked
        self.spaces = [0 if one is None else workspace(*one) for one in asked]

    def tried(self, number: int, seen: set[Any]) -> Optional[int]:
        key = self.keys[number]
        if key is None or key in seen or not torch.backends.cudnn.benchmark:
            return None
        seen.add(key)
        return workspace(*key, True)


def unsure(gpu: str) -> int:
    """The most that a plan may add for a GPU of its size, which cuDNN does not say without one: two tiles of 128 by 128 sums
    in fp32 on each multiprocessor, where a product is cut along its length (on an H200: at most 16.8 MB, and 549 of 557 operations are
    within 17 MB)."""
    return 2 * 128 * 128 * 4 * DEVICES[gpu]["multiProcessorCount"] if gpu in DEVICES else 0


def _last(tensor: Any) -> bool:
    return tensor.dim() in (4, 5) and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=_format(tensor.dim(), True))


def _format(dims: int, last: bool) -> Any:
    return torch.contiguous_format if not last or dims == 3 else torch.channels_last if dims == 4 else torch.channels_last_3d


def _laid(shape: Any, last: bool) -> tuple[tuple, tuple]:
    """A tensor's shape and strides as cuDNN gets them; one dimension is two (view1d_as_2d)."""
    shape = tuple(shape) if len(shape) > 3 else (*shape[:2], 1, shape[2])
    order = [0, *range(2, len(shape)), 1] if last else list(range(len(shape)))
    steps, step = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis] = step
        step *= shape[axis]
    return shape, tuple(steps)


def taken(gpu: str, x: Any, weight: Any, out: Any, options: Any, grad: Any = None, wanted: Any = (True,)) -> Optional[Taken]:
    """What a convolution (grad None) or its backward takes. options: stride, padding, dilation, transposed, output padding,
    groups; wanted: which of the gradients of input, weight and bias. None for kernels of torch's own."""
    stride, padding, dilation, transposed, _, groups = options
    last = _last(x) or _last(weight)  # cudnn_conv_suggest_memory_format
    if not transposed and 1 < groups == x.shape[1] and not last:
        return None  # depthwise kernels (Convolution.cpp, use_cudnn_depthwise)
    form = _format(x.dim(), last)
    copies = [one.nbytes for one in (x, weight, *(() if grad is None else (grad,))) if not one.is_contiguous(memory_format=form)]
    small, large = (out, x) if transposed else (x, out)
    laid = [_laid(one.shape, last) for one in (weight, small, large)]
    axes, own = len(laid[0][0]) - 2, x.dim() - 2
    spread = [(least,) * (axes - own) + tuple(one) * (own // len(one)) for one, least in ((padding, 0), (stride, 1), (dilation, 1))]

    def asked(operation: int) -> Any:
        return (gpu, operation, x.dtype, tuple(one[0] for one in laid), tuple(one[1] for one in laid), *spread, torch.backends.cudnn.allow_tf32)

    if grad is None:
        return Taken(copies, [asked(INPUT if transposed else FORWARD)])
    kinds = (FORWARD if transposed else INPUT, WEIGHT)
    return Taken(copies, [asked(kind) if one else None for kind, one in zip(kinds, wanted)])
