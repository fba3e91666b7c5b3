"""One forward on tensors without memory, call by call."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import os
import sys
import warnings
from typing import Any, Callable

import torch
from torch.fx.experimental import _config as symbolic
from torch.overrides import TorchFunctionMode

from ..errors import DevmapError
from ..measure.machine import grouped
from ..measure.places import line_of

# What CUDA's kernels keep where the meta device takes another way.


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
    return {"scaled_dot_product_attention": _attention, "dropout": _dropout, "bincount": _bincount}.get(name)


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


def _bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:  # noqa: A002
    """Of data: as many bins as are asked for at least."""
    return torch.empty(minlength, dtype=torch.int64 if weights is None else weights.dtype, device=input.device)


# Values of tensors that follow from the inputs alone, while all others have none.
#
# A forward on the meta device cannot ask a tensor for its value. Most that ask do so of tensors that are made of the
# inputs and of constants (lengths, positions, masks, grids of patches): of these, as far as they are small, the same
# calls are made on the CPU too. What asks for others (a router's choice, a stopping rule) is data-dependent.

# A tensor of more elements has no value here: masks of short sequences stay below.
LIMIT = 1 << 16

ASKS = frozenset("__bool__ item tolist __int__ __float__ __index__ numpy __contains__".split())
_RANDOM = frozenset("bernoulli dropout rand_like randn_like normal_ uniform_ multinomial random_ bernoulli_".split())


_ASKS = 1000  # a loop that asks more often for the truth of data has no end here


class Unseen(RuntimeError):
    """The value of a tensor was asked for and nothing says it."""


class Values:
    """Values by the id of the tensor without one; the trace keeps those tensors alive."""

    def __init__(self) -> None:
        self._of: dict[int, torch.Tensor] = {}

    def give(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        if value.numel() <= LIMIT:
            self._of[id(tensor)] = value.detach().to("cpu")

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        return self._of.get(id(tensor))

    def follow(self, func: Callable, args: tuple, kwargs: dict, result: Any) -> None:
        """Makes the call on values, where all that goes in has one."""
        if getattr(func, "__name__", "") in _RANDOM:
            return
        outputs = list(_leaves(result))
        if (
            not outputs
            or sum(one.numel() for one in outputs) > LIMIT
            or any(one.is_floating_point() and one.dim() > 2 for one in outputs)
        ):
            return
        try:
            with torch.no_grad(), torch.device("cpu"):
                real = func(*self._real(args), **self._real(kwargs))
        except Exception:  # noqa: BLE001 - no value then, which is what most tensors have
            return
        for tensor, value in zip(outputs, _leaves(real)):
            self._of[id(tensor)] = value

    def _real(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._of[id(value)]  # KeyError: it has none
        if isinstance(value, torch.device) and value.type == "meta" or isinstance(value, str) and value == "meta":
            return "cpu"
        if isinstance(value, dict):
            return {key: self._real(one) for key, one in value.items()}
        if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
            return type(value)(self._real(one) for one in value)
        return value


def _leaves(value: Any):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _leaves(one)


# One forward on tensors without memory, call by call.


@dataclasses.dataclass
class Step:
    """A call of a torch function: which tensors went in and came out, by number."""

    name: str
    scope: str  # path of the module whose forward made the call
    inputs: list[int]
    outputs: list[int]
    arguments: tuple
    keywords: dict
    saved: list[int] = dataclasses.field(default_factory=list)  # storages that autograd keeps for it


@dataclasses.dataclass
class Call:
    """A call of a module."""

    path: str
    first: int  # steps [first, end)
    end: int
    inputs: list[int]
    outputs: list[int]
    kinds: dict[str, int] = dataclasses.field(default_factory=dict)  # outputs by the name that the result gives them


class Trace(TorchFunctionMode):
    """Records steps while it is active. Tensors stay alive, so that no number is given twice."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.tensors: list[torch.Tensor] = []
        self.maker: dict[int, int] = {}  # tensor to the step that made it
        self.failed: dict[str, str] = {}  # module path to why its forward was not seen
        self.modules: dict[str, torch.nn.Module] = {}
        self.guessed: dict[str, str] = {}  # module path to the line that asked for what nothing says
        self.counted: dict[str, str] = {}  # line to the function that finds a number of elements
        self.values = Values()
        self.answers: dict[Any, Any] = {}
        self.sizes: dict[object, int] = {}  # bytes of a storage
        self.numbers: dict[int, int] = {}
        self.added: set[str] = set()  # parameters of adapters
        self.strays: dict[int, str] = {}  # lines that read a parameter which the module did not have
        self.beside: set[int] = set()  # steps of adapters
        self.events: list[tuple[str, tuple[str, ...], str]] = []  # calls of modules and reads of parameters: path, names, line
        self.asked: dict[str, int] = {}  # lines that ask for the truth of data, and how often
        self._names: dict[int, list[str]] = {}  # of a parameter's storage
        self._scopes: list[str] = [""]
        self._current: Step | None = None
        self.parameters: dict[int, list[str]] = {}  # all names of each
        self._known: set = set()
        for name, tensor in module.named_parameters(remove_duplicate=False):
            self.parameters.setdefault(self.number(tensor), []).append(name)
            self._known.add(storage_of(tensor))
            self._names.setdefault(storage_of(tensor), []).append(name)
        for tensor in module.buffers():
            self._known.add(storage_of(tensor))

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor; a new one where it was not seen."""
        key = id(tensor)
        if key not in self.numbers:
            self.numbers[key] = len(self.tensors)
            self.tensors.append(tensor)
        return self.numbers[key]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if isinstance(func, torch._ops.OpOverload):  # of an exported program: aten::add.Tensor
            name = func._schema.name.partition("::")[2]
            args = tuple(torch.device("meta") if isinstance(one, torch.device) else one for one in args)
            kwargs = {key: torch.device("meta") if isinstance(one, torch.device) else one for key, one in kwargs.items()}
        if name in ASKS:
            return self._ask(func, name, args, kwargs)
        if name in _PROPERTIES or name == "__get__" and not _is_view(func):
            return func(*args, **kwargs)
        if name == "__get__":
            name = "t"
        if name in _FINDS or name == "where" and len(args) == 1 or name in _INDEXES and _by_truth(args):
            frame = sys._getframe(1)
            line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            if self.values.of(args[0]) is None:
                self.counted.setdefault(line, name.strip("_"))
        step = Step(name.strip("_"), self._scopes[-1], self._numbers((args, kwargs)), [], args, kwargs)
        self._read(step.inputs)
        before, self._current = self._current, step
        try:
            result = (kernel(name) or func)(*args, **kwargs)
        finally:
            self._current = before
        outputs = self._numbers(result)
        if outputs:
            self.values.follow(func, args, kwargs, result)
            step.outputs = outputs
            for number in outputs:
                if number not in step.inputs or name.endswith("_"):
                    self.maker[number] = len(self.steps)
            self.steps.append(step)
        return result

    def _ask(self, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """The value of a tensor. A condition that nothing decides holds, and is noted."""
        value = self.values.of(args[0])
        if value is not None:
            return func(value, *args[1:], **kwargs)
        if args[0].device.type != "meta":
            return func(*args, **kwargs)
        frame = sys._getframe(2)
        line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        answer = self.answers.get(line)
        if answer is not None:
            return func(torch.as_tensor(answer(args[0]) if callable(answer) else answer, device="cpu"), *args[1:], **kwargs)
        self.asked[line] = self.asked.get(line, 0) + 1
        if name == "__bool__" and self.asked[line] <= _ASKS:
            self.guessed.setdefault(self._scopes[-1], line)
            return True
        raise Unseen(f"{line} asks for the value of a tensor ({name.strip('_')}), which devmap.export(…, values={{{line!r}: …}}) gives")

    def _numbers(self, value: Any) -> list[int]:
        return [self.number(tensor) for tensor in tensors_in(value)]

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Notes what autograd saves for the step that runs: storages, once each; a parameter is there anyway."""
        key = storage_of(tensor)
        if key not in self._known and self._current is not None:
            if key not in self.sizes:
                self.tensors.append(tensor)
                self.sizes[key] = storage(tensor).nbytes()
            if key not in self._current.saved:
                self._current.saved.append(key)
        return tensor

    def _read(self, inputs: list[int]) -> None:
        """Notes which parameters an operation reads, also through views."""
        for number in inputs:
            names = self._names.get(storage_of(self.tensors[number]))
            if isinstance(self.tensors[number], torch.nn.Parameter) and number not in self.parameters:
                self.strays.setdefault(number, line_of(sys._getframe(2)))
            if names:
                self.events.append((self._scopes[-1], tuple(names), line_of(sys._getframe(2))))

    @contextlib.contextmanager
    def inside(self, path: str):
        self.events.append((path, (), line_of(sys._getframe(3))))
        self._scopes.append(path)
        try:
            yield
        finally:
            self._scopes.pop()

    def called(self, path: str, first: int, args: Any, result: Any) -> None:
        """Notes a module's call; what came out of nowhere came from what went in."""
        inputs, outputs = self._numbers(args), self._numbers(result)
        for number in outputs:
            if number not in self.maker and number not in inputs and number not in self.parameters:
                self.maker[number] = len(self.steps)
                self.steps.append(Step("call", path, inputs, [number], (), {}))
        self.calls.append(Call(path, first, len(self.steps), inputs, outputs, _names(result, self)))


_FINDS = frozenset("nonzero argwhere masked_select".split())
_INDEXES = frozenset("__getitem__ __setitem__".split())


def _by_truth(args: tuple) -> bool:
    """Whether an index holds a tensor of truths."""
    return any(one.dtype == torch.bool and one.dim() > 0 for one in tensors_in(args[1:2]))


def _is_view(func: Callable) -> bool:
    return any(func is getattr(torch.Tensor, name).__get__ for name in ("T", "mT"))


def _names(result: Any, trace: Trace) -> dict[str, int]:
    if not hasattr(result, "items"):
        return {}
    return {str(name): trace.number(value) for name, value in result.items() if isinstance(value, torch.Tensor)}


def storage(tensor: torch.Tensor) -> Any:
    """A tensor's storage; inside torch.vmap that of all rows."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.untyped_storage()


def storage_of(tensor: torch.Tensor) -> int:
    """A storage's identity, which it has on the meta device too."""
    return storage(tensor)._cdata


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists, dicts and objects of frameworks (ModelOutput is a dict)."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for one in value for tensor in tensors_in(one)]
    return []


_PROPERTIES = frozenset(
    "size dim numel stride is_contiguous element_size storage_offset data_ptr nelement __len__ is_floating_point "
    "is_complex get_device".split()
)


# What a forward is run with.

# Sizes that no model has by chance, so that rows of an activation tell whose tokens they are.
BATCH, SEQ, TARGET = 2, 37, 29


def prepare(inputs: Any) -> tuple[tuple, dict, dict[Any, Any]]:
    """Arguments and keyword arguments on the meta device, and the values of those that had some."""
    values: dict[Any, Any] = {}

    def bare(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            empty = torch.empty(value.shape, dtype=value.dtype, device="meta")
            if value.device.type != "meta" and not value.is_floating_point():
                values[id(empty)] = value
            return empty
        if isinstance(value, dict):
            return {key: bare(one) for key, one in value.items()}
        if isinstance(value, (tuple, list)):
            return type(value)(bare(one) for one in value)
        return value

    args, kwargs = arguments(inputs)
    return bare(args), bare(kwargs), values


def arguments(inputs: Any) -> tuple[tuple, dict]:
    """Arguments and keyword arguments of one forward."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if hasattr(inputs, "items"):
        args, kwargs = (), {str(key): value for key, value in inputs.items()}
    elif isinstance(inputs, (tuple, list)):
        args, kwargs = tuple(inputs), {}
    else:
        raise DevmapError(
            f"export: inputs is a {type(inputs).__name__!r}: give a tuple of arguments or a dict of keyword arguments"
        )
    if not tensors_in((args, kwargs)):
        raise DevmapError("export: inputs holds no tensor")
    return args, kwargs


def usual(module: torch.nn.Module) -> dict | None:
    """Inputs of a Transformers model, from its config; None where the module does not say what it takes."""
    config = getattr(module, "config", None)
    if config is None or not hasattr(module, "main_input_name"):
        return None
    takes = _takes(module)
    given: dict = {}
    if "pixel_values" == module.main_input_name and "input_ids" not in takes:
        given["pixel_values"] = _pixels(config)
    elif "input_ids" == module.main_input_name and "input_ids" in takes:
        given["input_ids"] = _ids(SEQ)
        if "return_loss" in takes and "pixel_values" in takes:  # CLIP and its kin need both
            given["pixel_values"] = _pixels(getattr(config, "vision_config", config))
        if "return_loss" in takes and "input_features" in takes and hasattr(config, "audio_config"):  # CLAP
            given["input_features"] = _features(config.audio_config)
            given["is_longer"] = torch.ones((BATCH, 1), dtype=torch.bool)
    elif "input_ids" in takes and hasattr(config, "text_config") and not getattr(config, "is_encoder_decoder", False):
        given["input_ids"] = _ids(SEQ)  # text alone, of a model that reads sound or images too
    elif "input_features" in takes:
        given["input_features"] = _features(config)
    elif "input_values" in takes:
        given["input_values"] = torch.empty((BATCH, 16000), device="meta")
    elif "input_ids" in takes:
        given["input_ids"] = _ids(SEQ)
    if "decoder_input_ids" in takes and getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = _ids(TARGET)
    if "use_cache" in takes:
        given["use_cache"] = False
    dtype = next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.float32)
    given = {
        name: value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in given.items()
    }
    return given if tensors_in(given) else None


def _takes(module: torch.nn.Module) -> Any:
    inner = module.get_base_model() if hasattr(module, "get_base_model") else module  # peft's forward takes anything
    return inspect.signature(inner.forward).parameters


def takes_labels(module: torch.nn.Module) -> bool:
    """Whether a Transformers model computes the loss of tokens, if it is given labels."""
    return usual(module) is not None and "labels" in _takes(module)


def _ids(length: int) -> torch.Tensor:
    return torch.zeros((BATCH, length), dtype=torch.int64)


def _features(config: Any) -> torch.Tensor:
    """Sound as a model's feature extractor makes it: CLAP's crops, frames × bins, or bins × frames."""
    bins, frames = getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", 1500)
    if hasattr(config, "spec_size"):
        return torch.empty((BATCH, 4 if config.enable_fusion else 1, 1001, bins), device="meta")
    if hasattr(config, "feature_projection_input_dim"):  # Wav2Vec2-BERT
        return torch.empty((BATCH, 100, config.feature_projection_input_dim), device="meta")
    if hasattr(config, "input_feat_per_channel"):
        return torch.empty((BATCH, frames // 2, config.input_feat_per_channel * config.input_channels), device="meta")
    return torch.empty((BATCH, bins, frames), device="meta")


def _pixels(config: Any) -> torch.Tensor:
    side = getattr(config, "image_size", None) or getattr(getattr(config, "vision_config", None), "image_size", None) or 224
    sides: list[int] = list(side) if isinstance(side, (tuple, list)) else [side, side]
    return torch.empty((BATCH, getattr(config, "num_channels", None) or 3, *sides), device="meta")


# Runs a module's copy once, on tensors that have no memory.


def run(
    twin: torch.nn.Module, args: tuple, kwargs: dict, values: dict[Any, Any]
) -> tuple[Trace, Any, str | None]:
    """The trace of one training forward; what it returned; and, where it did not come to its end, why.

    values are of the inputs, by the id of those without, and answers to questions about data, by line.
    """
    trace = Trace(twin)
    trace.answers = values
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
        stack.enter_context(symbolic.patch(meta_nonzero_assume_all_nonzero=True))
        stack.enter_context(grouped())
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
