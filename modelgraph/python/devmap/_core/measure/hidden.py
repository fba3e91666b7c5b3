"""Memory that CUDA kernels take inside one operation, and that no tensor of Python shows.

Each entry names the file of torch (2.11, aten/src/ATen) that allocates. A function takes the operation's arguments and
gives the bytes of its allocations; they are freed when the operation ends.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from .convolutions import MULTIPROCESSORS
from .machine import Machine

# Operations whose kernels ask cuBLAS for its workspace (cuda/CUDABlas.cpp).
PRODUCTS = frozenset("mm addmm bmm baddbmm addbmm _grouped_mm _scaled_mm addmv mv dot".split())


def workspace_of(machine: Machine) -> int:
    """cuda/CuBLASHandlePool.cpp, parseChosenWorkspaceSize: 32 MiB on Hopper, 8,192 + 2 · 16 KiB before it (:4096:2:16:8)."""
    return 32 << 20 if machine.capability[0] in (9, 10, 12) else (4096 * 2 + 16 * 8) << 10


def lt_workspace_of(_: Machine) -> int:
    """cuda/CUDABlas.cpp, _parseChosenWorkspaceSize of cuBLASLt: 1 MiB, for a product with a bias."""
    return 1 << 20


def _rounded(number: int, to: int) -> int:
    return -(-number // to) * to


class Taken(int):
    """Bytes that one of RULES has for sizes. Tapes keep the sizes, as the bytes are no product of them."""

    rule: str
    sizes: tuple[int, ...]


def _by(rule: str, *sizes: int) -> Taken:
    taken = Taken(RULES[rule](*sizes))
    taken.rule, taken.sizes = rule, sizes
    return taken


def _softmax_backward(grad, output, *_, **__):
    """native/cuda/SoftMax.cu, softmax_backward_cuda_out: grad * output, in the layout of grad; host_softmax_backward copies it
    into the usual layout."""
    product = grad.numel() * max(grad.element_size(), output.element_size())
    return [product] * (1 if grad.is_contiguous() or 0 in grad.stride() else 2)


def _copies(*which):
    """Arguments that a kernel needs in the usual layout: contiguous() or expect_contiguous() of the file"""
    return lambda *args, **_: [args[one].numel() * args[one].element_size() for one in which if not args[one].is_contiguous()]


def _flash_backward(_grad, q, k, _v, *_, **__):
    """native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd: softmax_d, dq_accum; wide dk and dv for grouped heads.
    cuDNN's own workspace is not published; the same sizes hold on an H200."""
    batch, heads, length, width = q.shape
    grouped = [k.element_size() * batch * k.shape[2] * heads * width] * 2 if k.shape[1] != heads else []
    return [_by("flash", batch * heads, length, width), _by("flash", batch * heads, length, 1), *grouped]


def _flash(heads: int, length: int, width: int) -> int:
    """mha_bwd rounds the length and the width of a head up."""
    wide = 1 if width == 1 else _rounded(width, 32 if width <= 128 else 64)
    return 4 * heads * _rounded(length, 128) * wide


def _efficient_backward(grad, q, *_, **__):
    """native/transformers/cuda/attention_backward.cu, _efficient_attention_backward: delta, and the workspace of
    kernel_backward.h. A gradient of another layout than [batch, length, heads, width] is copied."""
    batch, heads, length, width = q.shape
    copied = [] if grad.transpose(1, 2).is_contiguous() else [grad.nbytes]
    return [*copied, 4 * batch * heads * length, _by("efficient", batch * heads, length, width)]


def _efficient(heads: int, length: int, width: int) -> int:
    """kernel_backward.h: dq in fp32 by tiles of 128 queries and 64 values, and 32 bytes a tile"""
    return heads * -(-length // 128) * (4 * 128 * _rounded(width, 64) + 32)


def _efficient_forward(q, _k, v, *_, **__):
    """native/transformers/cuda/attention.cu, _efficient_attention_forward"""
    return [_by("wide", q.shape[0] * q.shape[1] * q.shape[2], q.shape[-1], v.shape[-1])] if q.element_size() < 4 else []


def _embedding_backward(grad, indices, rows, *_, **__):
    """native/cuda/EmbeddingBackwardKernel.cu: indices are sorted"""
    count = indices.numel()
    return [_by("sorted", count)] * 4 + [_by("segments", count, rows, grad.shape[-1])]


def _layer_norm_backward(_grad, x, shape, *_, **__):
    """native/cuda/layer_norm_kernel.cu, LaunchGammaBetaBackwardCUDAKernel: parts of the gradients of weight and bias, and
    their sum's parts"""
    width = math.prod(shape)
    rows = x.numel() // max(1, width)
    return [_by("norm", rows, width, x.element_size())] * 2 + [_by("norm sum", rows, width)]


def _norm_parts(rows: int, width: int) -> int:
    """With many short rows, four for each 128 rows."""
    return 4 * -(-rows // 128) if rows > 64 * 1024 and width // 32 < MULTIPROCESSORS // 2 else 0


def _sum(tensor, dim=None, *_, **__):
    """native/cuda/Reduce.cuh: the parts of a sum over rows, such as a bias's gradient, in fp32. Images in channels last are
    rows of channels."""
    dims = sorted(one % tensor.dim() for one in dim) if dim else []
    order = sorted(range(tensor.dim()), key=lambda one: -tensor.stride(one))
    if not dims or sorted(order[: len(dims)]) != dims or len(dims) == tensor.dim() or not tensor.permute(order).is_contiguous():
        return []
    rows = math.prod(tensor.shape[one] for one in dims)
    return [_by("sum", rows, tensor.numel() // max(1, rows))]


def _parts_of_sum(rows: int, columns: int) -> int:
    """setReduceConfig and ReduceConfig.global_memory_size: a thread has up to 4 columns. Rows are cut over blocks where a
    thread would have 256 values."""
    vector = 4 if columns % 4 == 0 else 2 if columns % 2 == 0 else 1
    threads, power = 512 // vector, lambda number: 1 << max(0, number.bit_length() - 1)
    across = min(32, power(columns // vector))
    down = min(power(rows), threads // across)
    across = min(power(columns // vector), threads // down)
    values, blocks, target = -(-rows // down), -(-columns // (across * vector)), MULTIPROCESSORS * (2048 // (across * down))
    if values < 256 or blocks > target:
        return 0
    parts = max(min(-(-target // blocks), -(-values // 16)), -(-values // 256))
    return 4 * columns * parts * across * vector if parts > 1 else 0


# costmodel/internal/ops/cost.go has the same.
RULES: dict[str, Callable[..., int]] = {
    "sum": _parts_of_sum,
    "flash": _flash,
    "efficient": _efficient,
    "wide": lambda rows, width, values: 4 * rows * values if max(width, values) > 128 else 0,  # an fp32 accumulator of the output
    # native/cuda/Embedding.cu, embedding_dense_backward_cuda. A partial segment of 10 indices has a row of fp32.
    "sorted": lambda count: 8 * count if count > 3072 else 0,
    "segments": lambda count, rows, width: 4 * (-(-count // 10) + min(count, rows)) * width if count > 3072 else 0,
    "norm": lambda rows, width, element: _norm_parts(rows, width) * width * element,
    "norm sum": lambda rows, width: _parts_of_sum(_norm_parts(rows, width), width),
}


def _mse(tensor, _target, reduction=1, *_, **__):
    """native/BinaryOps.cpp and Loss.cpp, mse_loss_out: the squares before their mean"""
    return [tensor.nbytes] if reduction else []


BEFORE: dict[str, Callable[..., list[int]]] = {
    "_softmax_backward_data": _softmax_backward,
    "_softmax": _copies(0),  # native/cuda/SoftMax.cu, host_softmax
    "_log_softmax": _copies(0),
    "_log_softmax_backward_data": _copies(0),  # host_softmax_backward
    "native_layer_norm": _copies(0),  # native/cuda/layer_norm_kernel.cu
    "native_layer_norm_backward": _copies(0, 1),
    "embedding_dense_backward": _copies(0),  # native/cuda/Embedding.cu
}
AFTER: dict[str, Callable[..., list[int]]] = {
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_cudnn_attention_backward": _flash_backward,
    "_scaled_dot_product_efficient_attention": _efficient_forward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "embedding_dense_backward": _embedding_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    "sum": _sum,
    "mse_loss": _mse,
}

# Losses that are made in the size of their input and then resized: the storage stays (native/cuda/Loss.cu,
# binary_cross_entropy_out_cuda; mse_loss, as the allocations on an H200 show).
RESIZED = frozenset(["binary_cross_entropy", "mse_loss"])

# Operations with memory of a library that no rule here gives. An answer names them, and its peak is a lower bound.
_LIBRARIES: dict[str, str] = {
    "convolution": "cuDNN's workspace of a convolution",
    "convolution_backward": "cuDNN's workspace of a convolution",
    "_cudnn_rnn": "cuDNN's reserve and workspace of a recurrent layer",
    "_cudnn_rnn_backward": "cuDNN's workspace of a recurrent layer",
    "_ctc_loss": "memory inside the kernels of CTC",
    "_fft": "cuFFT's workspace",
    "linalg": "cuSOLVER's workspace",
    "_linalg": "cuSOLVER's workspace",
    "cholesky": "cuSOLVER's workspace",
}
_EASY = frozenset("linalg_vector_norm linalg_cross".split())  # kernels without a library

# Kernels that sort, count or copy inside, with the most that they take for each element of their arguments: keys and whole
# numbers, twice (native/cuda/Sort.cpp, TensorTopK.cu, Indexing.cu, Unique.cu, EmbeddingBag.cu, Randperm.cu, MultinomialKernel.cu).
_INSIDE = frozenset(
    "sort topk kthvalue median nanmedian mode unique_dim unique_consecutive _unique2 _unique nonzero masked_select index_put _index_put_impl_ cumsum cumprod "
    "logcumsumexp _embedding_bag _embedding_bag_dense_backward multinomial randperm bincount histc _cdist_backward searchsorted bucketize scatter_reduce".split()
)


def library(func: Any, name: str) -> str:
    """The memory of an operation that no rule gives and no bound limits; empty if there is none."""
    if func.namespace in ("c10d", "_c10d_functional", "fsdp"):  # collectives and copies into what they are given
        return ""
    if func.namespace not in ("aten", "prims", "prim"):
        return f"memory inside {func.namespace}::{name}, an operation of an extension,"
    if name in _EASY:
        return ""
    return _LIBRARIES.get(name) or _LIBRARIES.get(name[: name.find("_", 1)], "")


def bound(name: str, args: Any) -> int:
    """The most bytes that an operation may take inside, where no rule has the figure."""
    if name not in _INSIDE:
        return 0
    if name.endswith(("index_put", "index_put_impl_")):  # eight lists of whole numbers and the values, if it sums (Indexing.cu)
        count = math.prod(torch.broadcast_shapes(*(one.shape for one in args[1] if one is not None)))
        return 64 * count + args[2].nbytes if any(args[3:4]) else 0
    tensors = [one for one in tree_leaves(args) if isinstance(one, torch.Tensor)]
    return sum(2 * one.numel() * (8 + one.element_size()) for one in tensors)


# Functions of C++ that make one tensor and call no other operation that does.
_ALONE = frozenset(
    "_to_copy clone empty empty_like full full_like ones ones_like zeros zeros_like rand rand_like randn randn_like arange linspace new_empty new_full new_ones "
    "new_zeros scalar_tensor _unsafe_view add sub mul div remainder masked_fill sum mean stack constant_pad_nd embedding copy lift_fresh detach alias".split()
)
_KERNEL = "CUDA" if torch.version.cuda else "CPU"


@functools.cache
def parts(func: Any, name: str) -> Any:
    """The function of C++ that CUDA runs as other operations; None if CUDA has a kernel of its own (native_functions.yaml)."""
    if name in _ALONE or name.startswith(("_foreach_", "_fused_")) or func.namespace != "aten" or library(func, name) or func.is_view and name != "to":
        return None
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has(func.name(), _KERNEL):
        return None
    for key in ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"):
        if has(func.name(), key):
            return functools.partial(func._op_dk, getattr(torch._C.DispatchKey, key))
    return None
