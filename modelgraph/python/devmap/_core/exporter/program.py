"""Programs of torch.export (.pt2) as modules, with the paths and the classes of the module that was exported."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from ..errors import DevmapError

ENDING = ".pt2"


def is_program(model: object) -> bool:
    """Whether it is an ExportedProgram, or the name of a file of one."""
    return isinstance(model, torch.export.ExportedProgram) or isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(ENDING)


def opened(program: Any) -> tuple[torch.nn.Module, Any]:
    """The program as nested modules that run its operations, and the inputs that it was exported with."""
    if not isinstance(program, torch.export.ExportedProgram):
        path = os.fspath(program)
        try:
            program = torch.export.load(path)
        except Exception as error:  # noqa: BLE001 - whatever torch finds wrong with the file
            said = str(error).strip().splitlines()
            raise DevmapError(f"{path}: torch {torch.__version__} cannot read it as an exported program ({type(error).__name__}: {(said or [''])[0][:200]}); export it again with this torch") from error
    try:
        module = torch.export.unflatten(program)
    except Exception as error:  # noqa: BLE001
        raise DevmapError(f"the exported program cannot be unflattened ({type(error).__name__}: {str(error)[:200]}): devmap.export(module, inputs=…) takes the module itself") from error
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        tensor.requires_grad_(tensor.requires_grad and name in program.graph_signature.parameters)
    args, kwargs = program.example_inputs or ((), {})
    if args and kwargs:
        raise DevmapError("the program was exported with arguments and keyword arguments: export it with keyword arguments alone, torch.export.export(module, (), kwargs)")
    return module, kwargs or args or None


def class_of(part: torch.nn.Module) -> str:
    """The class that a module had before it was exported; empty for one that was not."""
    named = getattr(part, "type_name", None)
    if not callable(named) or type(part).__module__ != "torch.export.unflatten" or is_list(part):
        return ""  # a list has the class of its last member there
    return str(named() or "").rpartition(".")[2]


def not_split(part: torch.nn.Module) -> tuple[str, ...]:
    """_no_split_modules of a class of a library that is imported."""
    named = getattr(part, "type_name", None)
    if not class_of(part):
        return ()
    path = str(named() if callable(named) else "")
    library = sys.modules.get(path.partition(".")[0])
    if library is None or library.__name__ not in ("transformers", "diffusers"):
        return ()
    return tuple(getattr(getattr(library, class_of(part), None), "_no_split_modules", None) or ())


def is_list(part: torch.nn.Module) -> bool:
    """Whether an exported module was a list: its members have numbers."""
    return type(part).__module__ == "torch.export.unflatten" and bool(part._modules) and all(name.isdigit() for name in part._modules)
