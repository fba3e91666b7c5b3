"""What one device must hold whole."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ._errors import DevmapError


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
        names = {one if isinstance(one, str) else one.__name__ for one in no_split}
        classes = {kind for part in module.modules() for kind in _kinds(part)}
        for missing in sorted(names - classes):
            known = ", ".join(sorted(classes)[:12])
            raise DevmapError(
                f"export: no_split: no module is a {missing!r} (classes in {type(module).__name__}: {known})"
            )
        tops = _instances(module, names)
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
        names.update(getattr(part, "_no_split_modules", None) or ())
    return names


def _instances(module: torch.nn.Module, names: set[str]) -> set[str]:
    return {path for path, part in module.named_modules(remove_duplicate=False) if path and names & _kinds(part)}


def _kinds(part: torch.nn.Module) -> set[str]:
    """The name of a module's class; of one that fully_shard gave another class (FSDPLinear) what it was too."""
    kinds = {type(part).__name__}
    if any(base.__name__ == "FSDPModule" for base in type(part).__mro__):
        kinds.update(base.__name__ for base in type(part).__bases__)
    return kinds


def _members(module: torch.nn.Module) -> set[str]:
    """Members of lists: a block adds what came in to what it computed, outside of any module that could be moved."""
    tops: set[str] = set()
    for path, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, (torch.nn.ModuleList, torch.nn.Sequential)):
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
