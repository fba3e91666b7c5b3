"""Recurrent layers on the GPU: one call of cuDNN, with its reserve and its workspace.

native/cudnn/RNN.cpp: _cudnn_rnn, _cudnn_rnn_backward_input, _cudnn_rnn_backward_weight, _cudnn_rnn_flatten_weight. The
sizes that cuDNN gives were read off 90 layers on an H200 with cuDNN 9.19 (fixtures/measured/peaks_h200.jsonl).
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import DevmapError
from .convolutions import MULTIPROCESSORS
from .places import line_of

_MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}  # cudnnRNNMode_t
_SAVED = {0: 1, 1: 1, 2: 5, 3: 6}  # values that backward needs of each state: gates, cells
_GATES = {0: 1, 1: 1, 2: 4, 3: 3}
_STEP = {0: 4, 1: 4, 2: 10, 3: 5}  # buffers of one step
_FLAT = (torch.float16, torch.float32, torch.float64)  # torch.backends.cudnn.CUDNN_TENSOR_DTYPES


def flatten(module: torch.nn.RNNBase) -> None:
    """nn.RNNBase.flatten_parameters: one buffer for the weights of a layer on a GPU."""
    weights = [one for one in module._flat_weights if isinstance(one, FakeTensor) and one.fake_device.type == "cuda" and one.dtype in _FLAT]
    if len(weights) != len(module._flat_weights) or len({one.untyped_storage()._cdata for one in weights}) < len(weights):
        return
    with torch.no_grad():
        flat = torch.empty(_count(weights, module.bias), dtype=weights[0].dtype, device=weights[0].fake_device)
        start = 0
        for one in weights:
            one.data = flat[start : start + one.numel()].view(one.shape)
            start += one.numel()


def run(function: Any, name: str, x: Any, *args: Any) -> Any:
    """torch._VF.lstm and its like: (input, states, weights, …), of packed sequences (input, batch sizes, states, weights, …)."""
    if not x.is_cuda:
        return function(x, *args)
    packed = isinstance(args[0], torch.Tensor) and name != "lstm" and isinstance(args[1], torch.Tensor) or name == "lstm" and isinstance(args[0], torch.Tensor)
    sizes = args[0] if packed else None
    states, weights, bias, layers, dropout, train, both, *first = args[1:] if packed else args
    if isinstance(sizes, FakeTensor):
        raise DevmapError(f"measure: {line_of(sys._getframe(2))} packs sequences whose lengths are not known: give the lengths as a tensor on the CPU")
    hx, cx = states if name == "lstm" else (states, None)
    each = len(weights) // (layers * (2 if both else 1))
    total = _count(weights, bias)
    flat = weights[0].detach().as_strided((total,), (1,), 0) if len({one.untyped_storage()._cdata for one in weights}) == 1 else None
    hidden = weights[0].shape[0] // {"lstm": 4, "gru": 3}.get(name, 1)
    project = hx.shape[-1] if hx.shape[-1] != hidden else 0
    state = _dropped(x) if dropout and train else None
    made = torch.ops.aten._cudnn_rnn(
        x, weights, each, flat, hx, cx, _MODES[name], hidden, project, layers, bool(first and first[0]), dropout, train, both, [] if sizes is None else sizes.tolist(), state
    )
    return (made[0], made[1], made[2]) if name == "lstm" else (made[0], made[1])


def _dropped(x: Any) -> Any:
    """get_dropout_state: one a GPU and process, 24 bytes for each of 2,048 threads of the multiprocessors."""
    kept = x.fake_mode.ledger.kept
    if x.fake_device not in kept:
        kept[x.fake_device] = torch.empty(MULTIPROCESSORS * 2048 * 24, dtype=torch.uint8, device=x.fake_device)
    return kept[x.fake_device]


def _count(weights: Any, bias: bool) -> int:
    """cudnnGetRNNWeightSpaceSize: matrices and two biases each, also without biases."""
    total = sum(one.numel() for one in weights)
    return total if bias else total + sum(2 * one.shape[0] for one in weights[::2])


def _gru_cell(_: Any, __: Any, hx: Any, *___: Any) -> Any:
    """native/cuda/RNN.cu, _thnn_fused_gru_cell_cuda, which torch 2.11 has for data alone: the state, and five numbers for each
    of its values that backward needs."""
    workspace = hx.new_empty((hx.shape[0], 5 * hx.shape[1]))
    return torch.empty_like(hx), workspace


def _gru_cell_backward(grad: Any, workspace: Any, biases: bool) -> Any:
    """_thnn_fused_gru_cell_backward_cuda"""
    gates = [workspace.new_empty((workspace.shape[0], 3 * grad.shape[1])) for _ in range(2)]
    return (*gates, torch.empty_like(grad), *(one.sum(0) if biases else None for one in gates))


CELLS = {"_thnn_fused_gru_cell": _gru_cell, "_thnn_fused_gru_cell_backward": _gru_cell_backward}


class Sizes:
    """What one call of cuDNN takes, of the arguments of _cudnn_rnn from mode on."""

    def __init__(self, x: Any, weights: Any, mode: int, hidden: int, project: int, layers: int, batch_first: bool, dropout: float, both: bool, sizes: Any) -> None:
        self.copied = batch_first and not sizes and x.shape[0] > 1 and x.shape[1] > 1
        self.steps, self.batch = (len(sizes), sizes[0]) if sizes else (x.shape[1], x.shape[0]) if batch_first else tuple(x.shape[:2])
        tokens = sum(sizes) if sizes else self.steps * self.batch
        self.biases = sum(one.dim() == 1 for one in weights) > 0
        ways, item = 2 if both else 1, x.element_size()
        values = tokens * hidden * ways * item
        self.width, self.weights = (project or hidden) * ways, _count(weights, self.biases)
        dropped = (layers - 1) * ways * (tokens * hidden * ways // 8) if dropout else 0  # a bit for each value between layers
        projected = tokens * (hidden + project) * ways * item * layers if project else 0
        self.reserve = values * (_SAVED[mode] * layers + layers - 1) + projected + dropped + 256
        # cuBLAS has 8 MiB for each layer and direction, and matrices are laid out anew. cuDNN does not publish the rest: the
        # gates, the output and the input of each token, and gates of one step. LSTMs of aligned sizes have it to 1 KB.
        matrices = sum(one.numel() for one in weights if one.dim() > 1) * item
        more = _GATES[mode] - 1 + (2 if both else 1 if dropout else 0)
        step = (_STEP[mode] + (2 if both else 0)) * layers * self.batch * hidden * ways * item
        self.workspace = (8 << 20) * layers * ways + matrices + values * more + 2 * max(x.nbytes, values) + x.nbytes + step + 768
