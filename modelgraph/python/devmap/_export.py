"""devmap.export: a model.json (devmap.model/v1) of any torch.nn.Module."""
from __future__ import annotations

import json
import os
from typing import Any, Iterable, Optional, Union

import torch

from ._errors import DevmapError
from ._export_dtypes import entry
from ._export_ties import ties_of
from ._export_tree import layers_of
from ._export_units import units_of
from ._export_wrapped import unwrap

FORMAT = "devmap.model/v1"


def export(
    module: torch.nn.Module,
    path: Optional[Union[str, os.PathLike]] = None,
    *,
    no_split: Optional[Iterable[Union[str, type]]] = None,
    inputs: Any = None,
    name: Optional[str] = None,
) -> dict:
    """Describes module as a model.json, writes it to path if one is given, and returns it as a dict.

    The module may be on any device; on the meta device it needs no memory. It is not changed and not run.

    no_split: class names (or classes) of modules that one device must hold whole; the module's own
        ``_no_split_modules`` where absent, as Transformers and Accelerate read them; else the members of its
        outermost lists.
    inputs: what one forward takes, as a tuple of arguments or a dict of keyword arguments; their shapes and types
        count, not their values or devices.
    name: what tables call the model.
    """
    if not isinstance(module, torch.nn.Module):
        raise DevmapError(f"export: {type(module).__name__!r} is not a torch.nn.Module")
    module, warnings = unwrap(module)
    units, said = units_of(module, no_split)
    warnings += said
    layers, said = layers_of(module, units)
    warnings += said
    if not layers:
        raise DevmapError(f"export: {type(module).__name__} has no parameters or buffers: there is nothing to place")
    model = {"format_version": FORMAT, "name": name or type(module).__name__, "layers": [_layer(one) for one in layers]}
    ties = ties_of(module)
    if ties:
        model["ties"] = ties
    model["unknown"] = [f"exported from a {type(module).__name__}: its layers are known by their sizes alone"]
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file, indent=1)
            file.write("\n")
    return model


def _layer(layer) -> dict:
    """A layer as model.json has it."""
    out = {"name": layer.name}
    if layer.params:
        out["params"] = [entry(name, tensor) for name, tensor in layer.params]
    if layer.buffers:
        out["buffers"] = [entry(name, tensor) for name, tensor in layer.buffers]
    if layer.unit:
        out["unit"] = layer.unit
    return out
