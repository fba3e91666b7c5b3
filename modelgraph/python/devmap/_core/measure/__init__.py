"""devmap.measure: the memory of a step on GPUs that are not there.

machine.py is torch.cuda without a driver, events.py the storages' births and deaths, attention.py the kernels of
scaled_dot_product_attention, hidden.py what kernels allocate inside, values.py the questions about data, places.py the
module and line of a tensor, ../measured.py the replay in the program's allocator and the report.
"""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import contextlib
import functools
import gc
import time
import types
from collections.abc import Callable, Mapping
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from ..errors import DevmapError, UsageError
from ..measured import Measured
from .calls import Calls, Meta
from .events import Ledger
from .machine import Machine, pretended
from .places import Places, line_of_error
from .values import Value, Values


def measure(
    fn: Callable[..., Any],
    *args: Any,
    gpu: str = "h200",
    gpus: int = 1,
    values: Optional[Mapping[str, Value]] = None,
    **kwargs: Any,
) -> Measured:
    """As devmap.measure says."""
    if not callable(fn):
        raise UsageError(f"measure: {fn!r} cannot be called: give a function that runs the step")
    began = time.monotonic()
    machine = Machine(gpu, gpus)
    if not hasattr(values or {}, "items"):
        raise UsageError(f"values={values!r}: give a dict of line → value, as {{'train.py:42': 128}}")
    answers, places = Values(values), Places()
    ledger = Ledger(machine, answers, places)
    calls = Calls(ledger)
    try:
        with pretended(machine, ledger, calls.swaps()), places.following(), contextlib.ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            args, kwargs = fake_copies(ledger, (args, kwargs))
            stack.enter_context(ledger)
            stack.enter_context(Meta(ledger))
            kept = fn(*args, **kwargs)
    except DevmapError:
        raise
    except Exception as error:
        raise DevmapError(_failed(error)) from error
    unused = sorted(set(answers.given) - answers.used)
    if unused:
        raise UsageError(f"values: no question about data was asked at {', '.join(unused)}")
    answer = Measured(machine, ledger, calls.chosen, answers, time.monotonic() - began)
    del kept
    args = kwargs = ()  # type: ignore[assignment]
    gc.collect()
    ledger.refs.clear()  # what the caller keeps is no longer followed
    return answer


def fake_copies(ledger: Ledger, given: Any) -> Any:
    """Modules and large tensors in arguments as fake copies, so that the step changes none of the caller's."""
    import copy

    memo: dict[int, Any] = {}

    def one(value: Any) -> Any:
        if isinstance(value, torch.nn.Module):
            for tensor in [*value.parameters(), *value.buffers()]:
                if id(tensor) not in memo:
                    memo[id(tensor)] = _fake(ledger, tensor)
            for tensor in (one for part in value.modules() for one in vars(part).values()):
                if isinstance(tensor, torch.Tensor) and not tensor.is_leaf:  # a weight that a hook makes anew
                    memo.setdefault(id(tensor), tensor.detach().clone())
            return rebound(copy.deepcopy(value, memo), memo)
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.dtype.is_floating_point:
            return memo.setdefault(id(value), _fake(ledger, value))
        return value

    return tree_map(one, given)


def rebound(twin: torch.nn.Module, memo: Mapping[int, Any]) -> torch.nn.Module:
    """A copy of a module whose functions refer to copies too: deepcopy takes hooks and forwards that are closures as they are."""

    def new(function: Any) -> Any:
        if not isinstance(function, types.FunctionType):
            return function
        cells = [cell.cell_contents if cell != types.CellType() else cell for cell in function.__closure__ or ()]
        defaults = function.__defaults__ or ()
        if not any(id(one) in memo for one in (*cells, *defaults)):
            return function
        kept = tuple(types.CellType(memo[id(one)]) if id(one) in memo else cell for one, cell in zip(cells, function.__closure__ or ()))
        made = types.FunctionType(function.__code__, function.__globals__, function.__name__, tuple(memo.get(id(one), one) for one in defaults), kept)
        made.__kwdefaults__ = function.__kwdefaults__
        return functools.update_wrapper(made, function)

    for part in twin.modules():
        for found in (vars(part), part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks):
            found.update({name: new(value) for name, value in found.items() if isinstance(value, types.FunctionType)})
    return twin


def _fake(ledger: Ledger, tensor: torch.Tensor) -> torch.Tensor:
    device = "cpu" if tensor.device.type == "meta" else tensor.device
    with ledger.fake:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made


def _failed(error: Exception) -> str:
    """The error of a step, with its line."""
    line = line_of_error(error) or "the step"
    said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
    if "data pointer" in said or "data_ptr" in said or "numpy" in said:
        return (
            f"measure: {line} reads the memory of a tensor, as an extension of CUDA, Triton or numpy does, which a GPU that is "
            f"not there does not have: {said}"
        )
    return f"measure: {line}: {type(error).__name__}: {said}"
