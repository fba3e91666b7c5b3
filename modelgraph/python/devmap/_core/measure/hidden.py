"""Memory that CUDA kernels take inside one operation, and that no tensor of Python shows.

Each entry names the file of torch (2.11, aten/src/ATen) that allocates. A function takes the operation's arguments and
gives the bytes of its allocations; they are freed when the operation ends.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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


def _safe_softmax(x, dim, *_, **__):
    """native/transformers/attention.cpp, _safe_softmax: isneginf of the scores, then all"""
    return [x.numel(), x.numel() // max(1, x.shape[dim])]


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


def _sort(x, *_, **__):
    """native/cuda/Sort.cpp: indices and keys of the segmented sort"""
    return [x.numel() * x.element_size(), 8 * x.numel()]


BEFORE: dict[str, Callable[..., list[int]]] = {"_softmax_backward_data": _softmax_backward}
AFTER: dict[str, Callable[..., list[int]]] = {
    "_safe_softmax": _safe_softmax,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_cudnn_attention_backward": _flash_backward,
    "_scaled_dot_product_efficient_attention": _efficient_forward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "embedding_dense_backward": _embedding_backward,
    "native_layer_norm_backward": _layer_norm_backward,
}

# Operations with memory of a library that no rule here gives. An answer names them, and its peak is a lower bound.
UNKNOWN: dict[str, str] = {
    "convolution": "cuDNN's workspace of a convolution",
    "convolution_backward": "cuDNN's workspace of a convolution",
    "_cudnn_rnn": "cuDNN's reserve and workspace of a recurrent layer",
    "_cudnn_rnn_backward": "cuDNN's workspace of a recurrent layer",
    "_fft_c2c": "cuFFT's workspace",
    "_fft_r2c": "cuFFT's workspace",
    "_fft_c2r": "cuFFT's workspace",
    "_linalg_svd": "cuSOLVER's workspace",
    "_linalg_eigh": "cuSOLVER's workspace",
    "linalg_qr": "cuSOLVER's workspace",
    "linalg_cholesky_ex": "cuSOLVER's workspace",
    "_linalg_solve_ex": "cuSOLVER's workspace",
    "_ctc_loss": "cuDNN's workspace of CTC",
}
