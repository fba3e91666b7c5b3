"""What CUDA's kernels keep where the meta device takes another way."""

from __future__ import annotations

from typing import Any, Callable

import torch


class _Attention(torch.autograd.Function):
    """PyTorch's fused attention keeps queries, keys, values, its output and a number a row in fp32, and a mask that it
    was given (aten/src/ATen/native/transformers/attention.cpp: _scaled_dot_product_flash_attention and
    _efficient_attention_forward; derivatives.yaml). The meta device has the composite of two products, which keeps the
    scores."""

    @staticmethod
    def forward(ctx, query, key, value, mask):
        out = query.new_empty((*query.shape[:-1], value.shape[-1]))
        rows = query.new_empty(query.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, rows, *([] if mask is None else [mask]))
        return out

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError  # nothing goes back


def kernel(name: str) -> Callable | None:
    """A substitute for a function of torch while a forward is followed; None: itself."""
    return {"scaled_dot_product_attention": _attention, "dropout": _dropout}.get(name)


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **_: Any
) -> Any:
    return _Attention.apply(query, key, value, attn_mask)


def _dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: bool | None = None
) -> Any:  # noqa: A002
    """On CUDA a dropout keeps a byte an element (aten/src/ATen/native/Dropout.cpp: is_fused_kernel_acceptable)."""
    training = training if train is None else train
    if not training or not 0 < p < 1:
        return torch.nn.functional.dropout(input, p, training)
    return torch.native_dropout(input, p, True)[0]
