"""Runs a module's copy once, on tensors that have no memory."""

from __future__ import annotations

import contextlib
import logging
import warnings
from typing import Any

import torch

from ._export_trace import Trace, tensors_in


def run(
    twin: torch.nn.Module, args: tuple, kwargs: dict, values: dict[int, torch.Tensor]
) -> tuple[Trace, Any, str | None]:
    """The trace of one training forward; what it returned; and, where it did not come to its end, why.

    values are of the inputs, by the id of those without.
    """
    trace = Trace(twin)
    for tensor in tensors_in((args, kwargs)):
        if id(tensor) in values:
            trace.number(tensor)
            trace.values.give(tensor, values[id(tensor)])
    _watch(twin, trace)
    twin.train()
    result, fault = None, None
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_quiet())
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.device("meta"))  # what a forward makes without saying where
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(trace.pack, lambda tensor: tensor))
        stack.enter_context(trace)
        try:
            result = twin(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever a forward raises is a reason
            fault = reason(error)
    return trace, result, fault


def reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:240]


@contextlib.contextmanager
def _quiet():
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _watch(twin: torch.nn.Module, trace: Trace) -> None:
    """Puts the trace around every module's forward."""
    for path, module in twin.named_modules():
        trace.modules[path] = module
        module.forward = _watched(path, module.forward, trace)


def _watched(path: str, forward, trace: Trace):
    def watched(*args, **kwargs):
        first = len(trace.steps)
        try:
            with trace.inside(path):
                result = forward(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            result = _instead(path, args, kwargs, trace, error)
        trace.called(path, first, (args, kwargs), result)
        return result

    return watched


def _instead(path: str, args: tuple, kwargs: dict, trace: Trace, error: Exception):
    """A substitute for the result of a forward that could not be seen: a tensor like the one that went in, as blocks
    and networks give back; a module that returns something else makes its caller fail next."""
    if trace.failed or path == "":
        raise error
    went_in = [tensor for tensor in tensors_in((args, kwargs)) if tensor.is_floating_point()]
    if not went_in:
        raise error
    trace.failed[path] = reason(error)
    return torch.empty_like(went_in[0]).requires_grad_(went_in[0].requires_grad)
