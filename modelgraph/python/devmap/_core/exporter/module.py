"""A torch.nn.Module at rest: its layers, ties, no-split units and a copy without memory."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable

import torch
from torch.nn.parameter import is_lazy

from ..errors import DevmapError
from ..measure import rebound
from . import program, quantised

FORMAT = "devmap.model/v1"

# Parameters that are one tensor under several names.


def identity(tensor: torch.Tensor) -> object:
    """Equal for two tensors that are the same memory: one object, or two views of all of one storage.

    A storage has an identity on the meta device too, where it has no address (data_ptr is 0 for all).
    """
    try:
        storage = tensor.untyped_storage()._cdata
    except (AttributeError, NotImplementedError, RuntimeError):
        return id(tensor)  # a wrapper without a storage of its own (DTensor, torchao's)
    return (storage, tensor.storage_offset(), tensor.numel(), str(tensor.dtype))


def ties_of(module: torch.nn.Module) -> list:
    """Groups of full names, in order of registration; the first name of each owns the memory.

    A module that is registered twice ties all of its parameters.
    """
    names: dict = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [group for group in names.values() if len(group) > 1]


def apart(module: torch.nn.Module) -> list[str]:
    """Parameters that are several objects on one memory. Each has its own gradient, and a copy once a device is set."""
    names: dict = {}
    for name, parameter in module.named_parameters():
        names.setdefault(identity(parameter) if parameter.numel() else name, []).append(name)
    return [f"{' and '.join(group)} are {len(group)} parameters on one memory, which .to(device) copies and training moves apart: assign one Parameter to both" for group in names.values() if len(group) > 1]


# The module tree as layers: who holds which tensors, in order of registration.


@dataclasses.dataclass
class Layer:
    """A layer of model.json: tensors have names relative to its own."""

    name: str
    module: torch.nn.Module | None  # None: a bare parameter
    unit: str = ""
    params: list[tuple[str, torch.Tensor]] = dataclasses.field(default_factory=list)
    buffers: list[tuple[str, torch.Tensor]] = dataclasses.field(default_factory=list)
    saved: set[int] = dataclasses.field(default_factory=set)  # ids of the buffers that the state dict has


def layers_of(module: torch.nn.Module, units: dict[str, str]) -> tuple[list[Layer], list[str]]:
    """A layer for each module that holds tensors itself. Outside a unit, tensors of a module that has such modules
    below it are layers of their own, as a device map names them."""
    holders = [(path, part) for path, part in module.named_modules(remove_duplicate=False) if _tensors(part)]
    above = _ancestors(path for path, _ in holders)
    counted: set[object] = set()  # buffers that were seen
    layers: list[Layer] = []
    for path, part in holders:
        unit = units.get(path, "")
        bare = path == "" or not unit and path in above
        whole = Layer(path, part, unit)
        for kind, name, tensor in _tensors(part):
            _check(path, name, tensor)
            if kind == "buffer":
                if identity(tensor) in counted:
                    continue
                counted.add(identity(tensor))
            at, name_of = whole, name
            if bare:
                at = Layer(f"{path}.{name}" if path else name, None)
                layers.append(at)
                name = ""
            saved = kind == "buffer" and name_of not in part._non_persistent_buffers_set
            (_, tensor), *scales = quantised.stored(tensor)
            if saved:
                at.saved.add(id(tensor))
            (at.params if kind == "param" else at.buffers).append((name, tensor))
            at.buffers += [((name or "data") + more, scale) for more, scale in scales]
        whole.buffers += quantised.beside(part)
        if not bare and (whole.params or whole.buffers):
            layers.append(whole)
    words = [word for path, part in module.named_modules() for word in _plain(path, part)]
    return layers, unregistered(module) + apart(module) + words


def _tensors(part: torch.nn.Module) -> list[tuple[str, str, torch.Tensor]]:
    """The tensors that a module registers itself; buffers saved or not: all are moved to its device. A buffer that is the
    matrix of a linear layer (GPTQ, AWQ) counts as its weight."""
    params = [("param", name, tensor) for name, tensor in part._parameters.items() if tensor is not None]
    weight = quantised.packed(part)
    return params + [("param" if name == weight else "buffer", name, tensor) for name, tensor in part._buffers.items() if tensor is not None]


def _ancestors(paths) -> set[str]:
    above: set[str] = set()
    for path in paths:
        while "." in path:
            path = path.rpartition(".")[0]
            above.add(path)
    return above


def _check(path: str, name: str, tensor: torch.Tensor) -> None:
    if is_lazy(tensor):
        raise DevmapError(
            f"export: {path + '.' + name if path else name!r} has no shape yet (torch.nn.LazyModule): run one forward, "
            "then export"
        )


def unregistered(module: torch.nn.Module) -> list[str]:
    """Modules in plain lists and dicts, whose parameters torch does not know of."""
    known = {id(part) for part in module.modules()}
    said = []
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            inside = [one for one in _modules_in(value) if id(one) not in known]
            count = sum(one.numel() for holder in inside for one in [*holder.parameters(), *holder.buffers()])
            if count:
                said.append(
                    f"{path + '.' if path else ''}{name} is a plain {type(value).__name__} with {len(inside)} modules of "
                    f"{count:,} parameters: torch does not count, move or train them, and no device map names them; use "
                    "torch.nn.ModuleList or ModuleDict"
                )
    return said


def _modules_in(value) -> list[torch.nn.Module]:
    found = list(value.values()) if isinstance(value, dict) else list(value)
    return [one for one in found if isinstance(one, torch.nn.Module)]


def _plain(path: str, part: torch.nn.Module) -> list[str]:
    """Tensors in plain attributes: no framework moves or counts them."""
    made = {name for hook in part._forward_pre_hooks.values() if remakes(hook) for name in (getattr(hook, "name", ""),)}
    return [
        f"{path + '.' if path else ''}{name} is a tensor in a plain attribute, "
        f"{value.numel() * value.element_size():,} bytes: "
        "no device map moves it, and it is not counted"
        for name, value in vars(part).items()
        if isinstance(value, torch.Tensor) and value.numel() > 1 and name not in made and quantised.packed(part) is None
    ]


def remakes(hook) -> bool:
    """Whether a hook is torch's own that makes a weight of others (torch/nn/utils/weight_norm.py, spectral_norm.py)."""
    return type(hook).__module__ in ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm")


# What one device must hold whole.


def units_of(module: torch.nn.Module, no_split: Iterable[str | type] | None) -> tuple[dict[str, str], list[str]]:
    """For each module path inside a unit, the unit's path; and what is to be said about them.

    A unit is the outermost module of a class that must not be split, as Accelerate takes them
    (accelerate/utils/modeling.py, infer_auto_device_map: it looks at a module before its children).
    """
    said: list[str] = []
    if no_split is None:
        names = _own(module)
        tops = _instances(module, names) if names else _members(module)
        if not names and any(next(module.get_submodule(top).children(), None) is not None for top in tops):
            said.append(
                f"no_split was not given and {type(module).__name__} has no _no_split_modules: the members of its "
                f"outermost lists are kept whole ({_some(tops)})"
            )
    else:
        if isinstance(no_split, (str, type)):
            no_split = [no_split]
        no_split = list(no_split) if hasattr(no_split, "__iter__") else [no_split]
        for one in no_split:
            if not isinstance(one, (str, type)):
                raise DevmapError(f"export: no_split holds {one!r}: give classes of modules, or their names")
        names = {one if isinstance(one, str) else one.__name__ for one in no_split}
        classes = {kind for part in module.modules() for kind in _kinds(part)}
        for missing in sorted(names - classes):
            known = ", ".join(sorted(classes)[:12])
            raise DevmapError(
                f"export: no_split: no module is a {missing!r} (classes in {type(module).__name__}: {known})"
            )
        tops = _instances(module, names)
    # A weight is made of its parametrisations where the module runs (torch/nn/utils/parametrize.py).
    tops |= {path for path, part in module.named_modules(remove_duplicate=False) if path and "parametrizations" in part._modules}
    units: dict[str, str] = {}
    for path, _ in module.named_modules(remove_duplicate=False):
        top = _outermost(path, tops)
        if top is not None:
            units[path] = top
    return units, said


def _own(module: torch.nn.Module) -> set[str]:
    """_no_split_modules of the module and of the models inside it (modeling_utils.py, PreTrainedModel)."""
    names: set[str] = set()
    for part in module.modules():
        names.update(getattr(part, "_no_split_modules", None) or program.not_split(part))
    return names


def _instances(module: torch.nn.Module, names: set[str]) -> set[str]:
    return {path for path, part in module.named_modules(remove_duplicate=False) if path and names & _kinds(part)}


def _kinds(part: torch.nn.Module) -> set[str]:
    """The name of a module's class; of one that fully_shard gave another class (FSDPLinear) what it was too."""
    kinds = {program.class_of(part) or type(part).__name__}
    if any(base.__name__ == "FSDPModule" for base in type(part).__mro__):
        kinds.update(base.__name__ for base in type(part).__bases__)
    return kinds


def _members(module: torch.nn.Module) -> set[str]:
    """Members of lists: a block adds what came in to what it computed, outside of any module that could be moved."""
    tops: set[str] = set()
    for path, part in module.named_modules(remove_duplicate=False):
        made = "parametrizations" in path.split(".")
        if (isinstance(part, (torch.nn.ModuleList, torch.nn.Sequential)) or program.is_list(part)) and not made:
            tops.update(f"{path}.{key}" if path else key for key, member in part._modules.items() if member is not None)
    return tops


def _outermost(path: str, tops: set[str]) -> str | None:
    parts = path.split(".")
    for count in range(1, len(parts) + 1):
        prefix = ".".join(parts[:count])
        if prefix in tops:
            return prefix
    return None


def _some(paths: set[str]) -> str:
    first = sorted(paths)[:3]
    return ", ".join(first) + (", …" if len(paths) > 3 else "")


# Modules around the module that is meant: what they wrap is described, under its own names.

# Class name of a wrapper and the attribute that holds what it wraps.
_WRAPPERS = {
    "DistributedDataParallel": "module",  # torch/nn/parallel/distributed.py
    "DataParallel": "module",  # torch/nn/parallel/data_parallel.py
    "DeepSpeedEngine": "module",  # deepspeed/runtime/engine.py
    "OptimizedModule": "_orig_mod",  # torch/_dynamo/eval_frame.py, what torch.compile returns
}

# torch/distributed/fsdp/_flat_param.py: with use_orig_params too, a parameter is this process's part of it, in one
# dimension or empty.
_FLAT = "FullyShardedDataParallel"


def unwrap(module: torch.nn.Module) -> tuple:
    """The module inside, and what is to be said of the wrappers."""
    said = []
    while type(module).__name__ in _WRAPPERS:
        wrapper = type(module).__name__
        inner = getattr(module, _WRAPPERS[wrapper], None)
        if not isinstance(inner, torch.nn.Module):
            break
        said.append(
            f"the module was wrapped in {wrapper}: what it wraps is described, under the names that it has there"
        )
        module = inner
    flat = [path for path, part in module.named_modules() if type(part).__name__ == _FLAT]
    if flat:
        raise DevmapError(
            f"export: {flat[0] or 'the module'!r} is a {_FLAT}: its parameters are pieces of one flat tensor, under "
            "names or not, and not those of the model; export the module before it is wrapped"
        )
    for path, part in module.named_modules():
        if type(part).__name__ == "ParamWrapper":  # peft/tuners/lora/layer.py
            raise DevmapError(f"export: {path!r} adapts a parameter (target_parameters of peft), which no operation here does: use target_modules, or export the base model")
    _whole(module)
    return module, said


def _whole(module: torch.nn.Module) -> None:
    """Refuses parameters that ZeRO-3 shards (it keeps this process's part), and an empty tensor in their place
    (deepspeed/runtime/zero/partition_parameters.py: ds_shape is the whole's)."""
    for name, one in module.named_parameters():
        if hasattr(one, "ds_shape") and tuple(one.ds_shape) != tuple(one.shape):
            raise DevmapError(
                f"export: {name!r} is partitioned by ZeRO-3, its tensor here has the shape {list(one.shape)}; export "
                "the module as it is built outside of deepspeed.zero.Init"
            )


# A copy of a module without memory, to run instead of it.


def copy_of(module: torch.nn.Module, hooked: bool = False) -> torch.nn.Module:
    """The module with tensors on the meta device: same classes, same ties, and its hooks, which may talk to devices, if
    hooked says so. Everything that floats asks for gradients, as in full training."""
    known: dict = dict(quantised.matrices(module))
    made = dict(known)
    hidden = [one for part in module.modules() for value in vars(part).values() if isinstance(value, (list, tuple, dict)) for one in _modules_in(value)]
    for part in [inner for one in (module, *hidden) for inner in one.modules()]:
        for tensors in (part._parameters, part._buffers):
            for tensor in tensors.values():
                if tensor is not None and id(tensor) not in known:
                    known[id(tensor)] = _meta(tensor)
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and id(value) not in known:
                known[id(value)] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        known.update((id(one), _meta(one)) for _, one in quantised.beside(part))
    twin = rebound(copy.deepcopy(module, known), known)
    quantised.unpack(twin, made)
    for part in twin.modules():
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            kept = getattr(part, hooks)
            for key in [key for key, hook in kept.items() if not hooked and not remakes(hook)]:
                del kept[key]
        old = part.__dict__.pop("_old_forward", None)  # accelerate/hooks.py, add_hook_to_module
        if old is not None:
            part.__dict__.pop("forward", None)
    return twin


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    return empty


# Tensors as model.json writes them.

# torch's name of a type to the short one of model.json (modelgraph/dtype.go), where they differ.
_SHORT = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e8m0fnu": "f8_e8m0",
    "qint8": "i8",
    "quint8": "u8",
    "qint32": "i32",
}
_KNOWN = frozenset(_SHORT.values()) | {"bool", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2"}


def short(dtype: torch.dtype) -> str:
    """The name of a type in model.json."""
    name = str(dtype).replace("torch.", "")
    name = _SHORT.get(name, name)
    if name.endswith("fnuz"):
        name = name.replace("float8", "f8")
    return name


def entry(name: str, tensor: torch.Tensor) -> dict:
    """A tensor of a layer; the shape of one that is spread over devices (DTensor) is the whole's."""
    dtype = short(tensor.dtype)
    if dtype not in _KNOWN and not dtype.startswith("f8_"):
        raise DevmapError(f"export: {name!r} is of type {str(tensor.dtype)!r}, which model.json has no name for")
    return {"name": name, "shape": [int(side) for side in tensor.shape], "dtype": dtype}
