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


def _softmax_backward(grad, output, *_, **__):
    """native/cuda/SoftMax.cu, softmax_backward_cuda_out: grad * output"""
    return [grad.numel() * max(grad.element_size(), output.element_size())]


def _flash_backward(_grad, q, k, _v, *_, **__):
    """native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd: softmax_d, dq_accum; wide dk and dv for grouped heads.
    cuDNN's own workspace is not published; the same sizes hold on an H200."""
    batch, heads, length, width = q.shape
    rows = _rounded(length, 128)
    wide = _rounded(width, 32 if width <= 128 else 64)
    grouped = [k.element_size() * batch * k.shape[2] * heads * width] * 2 if k.shape[1] != heads else []
    return [4 * batch * rows * heads * wide, 4 * batch * heads * rows, *grouped]


def _efficient_backward(_grad, q, *_, **__):
    """native/transformers/cuda/attention_backward.cu, _efficient_attention_backward: delta, and dq in fp32"""
    batch, heads, length, width = q.shape
    return [4 * batch * heads * length] + ([4 * batch * heads * length * width] if q.element_size() < 4 else [])


def _efficient_forward(q, _k, v, *_, **__):
    """native/transformers/cuda/attention.cu, _efficient_attention_forward: an fp32 accumulator of the output above 128"""
    wide = max(q.shape[-1], v.shape[-1]) > 128 and q.element_size() < 4
    return [4 * q.shape[0] * q.shape[1] * q.shape[2] * v.shape[-1]] if wide else []


def _embedding_backward(grad, indices, rows, *_, **__):
    """native/cuda/EmbeddingBackwardKernel.cu: above 3,072 indices they are sorted, and a partial segment of 10 has a row of
    fp32"""
    count = indices.numel()
    if count <= 3072:
        return []
    return [8 * count] * 4 + [4 * (-(-count // 10) + min(count, rows)) * grad.shape[-1]]


def _layer_norm_backward(_grad, x, shape, *_, **__):
    """native/cuda/layer_norm_kernel.cu, LayerNormBackwardKernelImplInternal: partial sums of the weight's gradient"""
    width = math.prod(shape)
    rows = x.numel() // max(1, width)
    return [4 * width * min(64, -(-rows // 128))] * 2 if rows > 128 else []


def _sum(tensor, dim=None, *_, **__):
    """native/cuda/Reduce.cuh, setReduceConfig, ReduceConfig.global_memory_size: the parts of a sum over rows (a bias's
    gradient), fp32. A block of 32 times 4 threads has 4 columns a thread; rows are cut over blocks where a thread would
    have 256 values."""
    dims = sorted(one % tensor.dim() for one in dim) if dim else []
    if not tensor.is_contiguous() or not dims or dims != list(range(len(dims))) or len(dims) == tensor.dim():
        return []
    rows, columns = math.prod(tensor.shape[: len(dims)]), math.prod(tensor.shape[len(dims) :])
    if columns % 4 or columns < 128:
        return []
    values, blocks, target = -(-rows // 4), -(-columns // 128), 132 * 2048 // 128
    if values < 256 or blocks > target:
        return []
    parts = max(min(-(-target // blocks), -(-values // 16)), -(-values // 256))
    return [4 * columns * parts * 128] if parts > 1 else []


BEFORE: dict[str, Callable[..., list[int]]] = {"_softmax_backward_data": _softmax_backward}
AFTER: dict[str, Callable[..., list[int]]] = {
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_cudnn_attention_backward": _flash_backward,
    "_scaled_dot_product_efficient_attention": _efficient_forward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "embedding_dense_backward": _embedding_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    "sum": _sum,
}

# Losses that are made in the size of their input and then resized: the storage stays (native/cuda/Loss.cu,
# binary_cross_entropy_out_cuda).
RESIZED = frozenset(["binary_cross_entropy"])

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
