"""The kernel of scaled_dot_product_attention that CUDA takes, by torch's own rules.

aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: select_sdp_backend tries the kernels of priority_order; each has
a can_use_…_attention. The rules follow torch 2.11; 1,947 calls on an H200 chose as they say (fixtures/measured/peaks_h200.jsonl). docs/design/34-measured-steps.md says what another torch changes.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc"

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .machine import Machine

aten = torch.ops.aten


class Asked:
    """One call: sdp_params of sdp_utils_cpp.h."""

    def __init__(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        self.q, self.k, self.v, self.mask = query, key, value, attn_mask
        self.dropout, self.causal, self.scale, self.grouped = float(dropout_p), is_causal, scale, enable_gqa
        self.half = query.dtype in (torch.float16, torch.bfloat16)
        self.grad = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))

    @property
    def widths(self) -> tuple[int, int]:
        return self.q.shape[-1], self.v.shape[-1]

    def shapes(self) -> bool:
        """check_tensor_shapes, check_nonzero_sequence_lengths_dense, and the batch of check_batch_size_and_num_heads_dense"""
        tensors = (self.q, self.k, self.v)
        return all(one.dim() == 4 for one in tensors) and self.q.shape[0] == self.k.shape[0] == self.v.shape[0] and min(self.q.shape[2], self.k.shape[2]) > 0

    def rows(self, ignore_singletons: bool) -> bool:
        """check_last_dim_stride_equals_1_dense"""
        one = lambda tensor: tensor.stride(-1) == 1 or ignore_singletons and tensor.shape[-1] == 1  # noqa: E731
        return all(one(tensor) for tensor in (self.q, self.k, self.v)) and (self.mask is None or self.mask.stride(-1) == 1)

    def heads(self, grouped: bool) -> bool:
        """check_batch_size_and_num_heads_dense; grouped: the kernel takes fewer heads of keys (check_grouped_query_attention)"""
        q, k, v = (one.shape[-3] for one in (self.q, self.k, self.v))
        return q == k == v or grouped and self.grouped and k == v and k > 0 and q % k == 0


def _low(asked: Asked, machine: Machine) -> bool:
    """check_dtypes_low_precision"""
    return asked.q.dtype == torch.float16 or asked.half and machine.capability[0] >= 8


def cudnn(asked: Asked, machine: Machine) -> bool:
    """can_use_cudnn_attention; the order of the kernels puts it first on Hopper and data-centre Blackwell alone
    (check_prefer_cudnn_attention, cuDNN above 9.15)."""
    if machine.capability[0] not in (9, 10) or not torch.backends.cuda.cudnn_sdp_enabled() or torch.are_deterministic_algorithms_enabled():
        return False
    q, v = asked.widths
    limit = 256 if machine.capability == (9, 0) else 128  # check_cudnn_tensor_shapes
    wide = max(q, v) <= limit or (q, v) == (192, 128)
    if not (_low(asked, machine) and asked.shapes() and asked.rows(True) and asked.heads(True) and wide and q % 8 == 0 and v % 8 == 0):
        return False
    if asked.mask is not None and asked.mask.requires_grad:  # check_attn_mask_shape
        return False
    length = asked.k.shape[2]
    return length != 1 and not (asked.dropout and asked.q.shape[2] == 1) and max(asked.q.shape[:2]) <= 65535


def flash(asked: Asked, machine: Machine) -> bool:
    """can_use_flash_attention"""
    if not torch.backends.cuda.flash_sdp_enabled() or machine.capability < (8, 0) or asked.mask is not None:
        return False
    q, v = asked.widths
    if not (_low(asked, machine) and asked.shapes() and asked.rows(True) and asked.heads(True) and q == v == asked.k.shape[-1] and q <= 256):
        return False
    if asked.causal and asked.q.shape[2] != asked.k.shape[2]:  # check_flash_causal_non_square_seqlens
        return False
    # check_requires_grad_and_head_dim_gt192_constraints_on_sm86_89_or_120
    small = machine.capability in ((8, 6), (8, 9), (12, 0), (12, 1))
    return not (asked.grad and small and q > 192 and (q <= 224 or asked.dropout > 0))


def efficient(asked: Asked, machine: Machine) -> bool:
    """can_use_mem_efficient_attention; minimum_gemm_alignment"""
    if not torch.backends.cuda.mem_efficient_sdp_enabled():
        return False
    major = machine.capability[0]
    kinds = (torch.float16, torch.float32) + ((torch.bfloat16,) if major >= 8 else ())
    align = max(4 if major >= 8 else 1, 128 // (16 if asked.half else 32) if major >= 8 or major >= 7 and asked.half else 1)
    q, v = asked.widths
    return asked.q.dtype in kinds and asked.shapes() and asked.rows(False) and asked.heads(False) and q == asked.k.shape[-1] and q % align == 0 and v % align == 0


def choose(asked: Asked, machine: Machine) -> str:
    """select_sdp_backend"""
    for kernel in (cudnn, flash, efficient):
        if kernel(asked, machine):
            return kernel.__name__
    return "math"


def run(asked: Asked, kernel: str) -> Any:
    """scaled_dot_product_attention of native/transformers/attention.cpp, with the kernel that was chosen"""
    q, k, v, mask = asked.q, asked.k, asked.v, asked.mask
    if mask is not None and mask.dtype == torch.bool:  # convert_boolean_attn_mask
        mask = torch.where(mask, torch.zeros((), dtype=q.dtype, device=q.device), float("-inf"))
    if kernel == "math":
        return aten._scaled_dot_product_attention_math(q, k, v, mask, asked.dropout, asked.causal, None, scale=asked.scale, enable_gqa=asked.grouped)[0]
    if kernel == "cudnn":
        return aten._scaled_dot_product_cudnn_attention(q, k, v, mask, asked.grad, asked.dropout, asked.causal, False, scale=asked.scale)[0]
    if kernel == "flash":  # pad_last_dim<8>
        width = q.shape[-1]
        scale = asked.scale if asked.scale is not None else width**-0.5
        if width % 8:
            q, k, v = (F.pad(one, (0, 8 - width % 8)) for one in (q, k, v))
        return aten._scaled_dot_product_flash_attention(q, k, v, asked.dropout, asked.causal, False, scale=scale)[0][..., :width]
    if mask is not None:  # preprocess_mask, pad_bias<16>
        length = mask.shape[-1]
        if length % 16:
            mask = F.pad(mask, (0, 16 - length % 16))[..., :length]
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return aten._scaled_dot_product_efficient_attention(q, k, v, mask, asked.grad, asked.dropout, asked.causal, scale=asked.scale)[0]
