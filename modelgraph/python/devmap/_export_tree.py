"""The module tree as layers: who holds which tensors, in order of registration."""

from __future__ import annotations

import dataclasses

import torch
from torch.nn.parameter import is_lazy

from ._errors import DevmapError
from ._export_ties import identity


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
            if kind == "buffer" and name_of not in part._non_persistent_buffers_set:
                at.saved.add(id(tensor))
            (at.params if kind == "param" else at.buffers).append((name, tensor))
        if not bare and (whole.params or whole.buffers):
            layers.append(whole)
    return layers, [word for path, part in module.named_modules() for word in _plain(path, part)]


def _tensors(part: torch.nn.Module) -> list[tuple[str, str, torch.Tensor]]:
    """The tensors that a module registers itself; buffers saved or not: all are moved to its device."""
    params = [("param", name, tensor) for name, tensor in part._parameters.items() if tensor is not None]
    return params + [("buffer", name, tensor) for name, tensor in part._buffers.items() if tensor is not None]


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


def _plain(path: str, part: torch.nn.Module) -> list[str]:
    """Tensors in plain attributes: no framework moves or counts them."""
    return [
        f"{path + '.' if path else ''}{name} is a tensor in a plain attribute, "
        f"{value.numel() * value.element_size():,} bytes: "
        "no device map moves it, and it is not counted"
        for name, value in vars(part).items()
        if isinstance(value, torch.Tensor) and value.numel() > 1
    ]
