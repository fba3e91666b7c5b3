"""devmap.export: a model.json (devmap.model/v1) of any torch.nn.Module."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..errors import DevmapError, spare
from . import program, quantised, tape
from .meet import groups_of
from .module import FORMAT, Layer, entry, layers_of, ties_of, units_of, unwrap
from .forward import SEQ, arguments, usual
from .seen import FROZEN, STOPPED, Seen, look, of_module


def export(
    module: torch.nn.Module,
    path: str | os.PathLike | None = None,
    *,
    no_split: Iterable[str | type] | None = None,
    inputs: Any = None,
    name: str | None = None,
    values: Mapping[str, Any] | None = None,
    steps: bool = True,
) -> dict[str, Any]:
    """Describes module as a model.json, writes it to path if one is given, and returns it as a dict.

    The module may be on any device; on the meta device it needs no memory. It is not changed and not run: a copy
    without memory runs one training forward, in which its operations, their order and what autograd keeps are seen.

    no_split: class names (or classes) of modules that one device must hold whole; the module's own
        ``_no_split_modules`` where absent, as Transformers and Accelerate read them; else the members of its
        outermost lists.
    inputs: what one forward takes, as a tuple of arguments or a dict of keyword arguments; shapes and types count, and
        values of integers that the forward asks for. Transformers models of text have usual ones.
    name: what tables call the model.
    values: answers to questions about data, by line, for the memory of a step.
    steps: whether to follow the memory of steps, which weights alone do not need.
    """
    if program.is_program(module):
        module, example = program.opened(module)
        inputs = example if inputs is None else inputs
    if not isinstance(module, torch.nn.Module):
        raise DevmapError(f"export: {type(module).__name__!r} is not a torch.nn.Module, nor a program of torch.export")
    module, warnings = unwrap(module)
    units, said = units_of(module, no_split)
    warnings += said
    layers, said = layers_of(module, units)
    warnings += said + of_module(module)
    if not layers:
        raise DevmapError(f"export: {type(module).__name__} has no parameters or buffers: there is nothing to place")
    seen = look(module, layers, units, inputs, values or {})
    warnings += seen.warnings
    model: dict[str, Any] = {"format_version": FORMAT, "name": name or program.class_of(module) or type(module).__name__}
    if seen.taken:
        model["taken"] = seen.taken
    longest = _longest(module)
    if longest:
        model["max_seq"] = longest
    model["layers"] = [_layer(one, seen) for one in seen.layers]
    ties = ties_of(module)
    if ties:
        model["ties"] = ties
    given = inputs if inputs is not None else usual(module)
    if seen.staged:
        model["staged"] = seen.staged
    if seen.ran and given is not None:
        groups = groups_of(module, seen.layers, arguments(given))
        warnings += groups.warnings
        if groups.joined:
            model["joined"] = groups.joined
        if steps and not any(said.startswith(STOPPED) for said in warnings):
            taking = dict.fromkeys(tape.MODES, given)
            if inputs is None:  # a step with the loss of tokens, and one that fills a cache
                taking = {mode: {**given, **seen.labels} for mode in tape.MODES}
                taking["infer"] = {name: one for name, one in given.items() if name != "use_cache"}
            far = min(16 * SEQ, longest or 16 * SEQ) if inputs is None and list(seen.size) == ["batch", "precision", "seq"] else 0
            said, still = _tapes(module, model, seen, taking, dict(values or {}), far if far > SEQ else 0)
            warnings = [one for one in warnings if not (still and one.endswith(FROZEN))] + said
    if warnings:
        model["warnings"] = warnings
    # devmap's own engine needs numbers (epsilons, bases, scales), which no forward shows.
    known = "operations' sizes, not by their formulas" if seen.parts else "own sizes alone"
    model["unknown"] = [f"exported from a {program.class_of(module) or type(module).__name__}: its layers are known by their {known}"]
    if path is not None:
        spare(path, '"exported from a ', "model that devmap exported")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file, indent=1)
            file.write("\n")
    return model


def _tapes(module: torch.nn.Module, model: dict[str, Any], seen: Seen, inputs: dict[str, Any], values: dict, far: int) -> tuple[list[str], bool]:
    """Adds the memory of a step to layers, and what a backward gives no gradient. Models of Transformers whose operations are
    all known have rules, which also know the losses of trainers. Also: whether parameters without a gradient are marked."""
    if quantised.any_in(module) or usual(module) is not None and not seen.declared:
        return [], False
    parts, why, unasked, idle = tape.play(module, seen.layers, inputs, values, far)
    for layer in model["layers"]:
        if layer["name"] in parts:
            layer["tape"] = parts[layer["name"]]
    model["taken"] = seen.size
    said = [f"the memory of a step ({mode}) was not followed: {one}" for mode, one in why.items()]
    for layer in model["layers"] if "train" not in why else ():
        for one in layer.get("params", ()):
            if f"{layer['name']}.{one['name']}".strip(".") in idle:
                one["frozen"] = True
    if unasked:
        said.append(f"peaks have no workspaces of convolutions: torch {torch.__version__} has no cuDNN to ask for them; export with a torch for CUDA, which needs no GPU")
    return said, "train" not in why


def _longest(module: torch.nn.Module) -> int | None:
    """The longest sequence that a Transformers config names."""
    config = getattr(module, "config", None)
    longest = "max_target_positions" if getattr(config, "is_encoder_decoder", False) else "max_position_embeddings"
    for one in (config, getattr(config, "text_config", None)):
        length = getattr(one, longest, None)
        if isinstance(length, int) and length > 0:
            return length
    return None


def _layer(layer: Layer, seen: Seen) -> dict[str, Any]:
    out: dict[str, Any] = {"name": layer.name}
    part = seen.parts.get(id(layer))
    if part is not None:
        out["op"] = part.op
        if part.runs > 1:
            out["repeat"] = part.runs
    elif not layer.params and layer.buffers:
        out["op"] = {"kind": "parameter"}  # buffers alone cost nothing but their bytes
    if layer.params:
        out["params"] = [entry(name, tensor) for name, tensor in layer.params]
    if layer.buffers:
        out["buffers"] = [{**entry(name, tensor), **({"persistent": True} if id(tensor) in layer.saved else {})} for name, tensor in layer.buffers]
    if seen.ran:
        out["inputs"] = seen.inputs.get(layer.name, [])
    if layer.unit:
        out["unit"] = layer.unit
    if seen.streams.get(layer.name):
        out["stream"] = seen.streams[layer.name]
    if layer.name in seen.declared:
        out["declared"] = seen.declared[layer.name]
    return out
