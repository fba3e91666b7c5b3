"""A model argument as the program reads it: a path, a name, a config of Transformers, a module, a model.json."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .errors import UsageError


class Model:
    """A model as a path for the program, in a temporary folder if it was in memory.

    The folder lives as long as this object: until then the program can read it again.
    """

    __slots__ = ("__weakref__", "folder", "inputs", "model", "module", "path", "unseen")

    def __init__(
        self, model: object, inputs: Any = None, no_split: Any = None, ran: bool = True, architecture: str = ""
    ) -> None:
        """inputs and no_split are those of devmap.export; ran: the call counts operations, not weights alone."""
        self.folder = ""
        model, inputs = of_program(model, inputs)
        self.model, self.inputs = model, inputs
        self.module = module = is_module(model)
        self.unseen = True  # a module of which no forward was run
        if not module and (inputs is not None or no_split is not None):
            said = "inputs" if inputs is not None else "no_split"
            raise UsageError(f"{said} is for a torch.nn.Module, and this model is a {type(model).__name__}")
        if architecture and module:
            raise UsageError(f"architecture={architecture!r} is for a config: this model is a {type(model).__name__}")
        if isinstance(model, (str, os.PathLike)):
            self.path = os.fsdecode(model)
            if architecture:
                self.path = self._with_architecture(architecture)
        elif isinstance(model, dict):
            self.path = self._write(str(model.get("name", "model")), "model.json", _json(model))
        elif hasattr(model, "to_json_string") and hasattr(model, "model_type"):
            config: Any = model
            text = config.to_json_string()
            if architecture:
                text = _json({**json.loads(text), "architectures": [architecture]})
            self.path = os.path.dirname(self._write(_name(model), "config.json", text))
        elif module:
            self.path = self._exported(model, inputs, no_split, ran)
        else:
            raise UsageError(
                f"a {type(model).__module__}.{type(model).__name__} is no model: give a path, a name, a config of "
                "Transformers, a torch.nn.Module, or what devmap.export returns"
            )

    def _exported(self, module: Any, inputs: Any, no_split: Any, ran: bool) -> str:
        from .exporter import export
        from .exporter.seen import STOPPED

        kind = type(module).__name__
        if _is_script(module):
            raise UsageError(f"a {kind} of torch.jit hides its operations: pass the module that was scripted or traced")
        document = export(module, inputs=inputs, no_split=no_split, steps=ran)
        self.unseen = not any("inputs" in layer for layer in document["layers"])
        if ran and not any(_has_operation(layer) for layer in document["layers"]):
            raise UsageError(
                f"the operations of {kind} are not known, so that its activations cannot be counted: "
                f"{_unseen(document, inputs)}, or mode='load' to plan the weights alone"
            )
        stopped = [said for said in document.get("warnings", []) if said.startswith(STOPPED)]
        if ran and stopped:
            raise UsageError(f"{kind}: {stopped[0]}; mode='load' plans the weights alone")
        return self._write(kind, "model.json", _json(document))

    def _with_architecture(self, architecture: str) -> str:
        """A copy of a folder's config that names another class."""
        source = self.path
        if os.path.isdir(source):
            source = os.path.join(source, "config.json")
        try:
            with open(source, encoding="utf-8") as file:
                config = json.load(file)
        except (OSError, ValueError) as err:
            raise UsageError(
                f"architecture={architecture!r} needs a config: {source} cannot be read ({err}); "
                "AutoConfig.from_pretrained(name) gives one"
            ) from err
        config["architectures"] = [architecture]
        name = os.path.basename(os.path.dirname(os.path.abspath(source)))
        return os.path.dirname(self._write(name, "config.json", _json(config)))

    def beside(self, file: str, document: object) -> str:
        """A document that lives as long as the model, as a file."""
        path = os.path.join(self._temporary(), file)
        with open(path, "w", encoding="utf-8") as target:
            target.write(_json(document))
        return path

    def _temporary(self) -> str:
        import shutil
        import tempfile
        import weakref

        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="devmap-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        return self.folder

    def _write(self, name: str, file: str, text: str) -> str:
        plain = "".join(char if char.isalnum() or char in "._-" else "-" for char in name).strip(".")
        folder = os.path.join(self._temporary(), plain or "model")
        os.mkdir(folder)
        path = os.path.join(folder, file)
        with open(path, "w", encoding="utf-8") as target:
            target.write(text)
        return path


def of_program(model: object, inputs: Any) -> tuple[object, Any]:
    """The module and the inputs of a program of torch.export; all else as it is."""
    exported = type(model).__name__ == "ExportedProgram"
    if not exported and not (isinstance(model, (str, os.PathLike)) and os.fsdecode(model).endswith(".pt2")):
        return model, inputs
    try:
        from .exporter import program
    except ImportError as err:
        raise UsageError(f"{model}: a program of torch.export is read by torch, which is not installed ({err})") from err
    module, example = program.opened(model)
    return module, example if inputs is None else inputs


def _has_operation(layer: dict[str, Any]) -> bool:
    """Whether something runs in a layer: one of buffers alone has an operation by name only, but a step can show its memory."""
    return "declared" in layer or "tape" in layer or "op" in layer and ("params" in layer or layer["op"].get("kind") != "parameter")


def _unseen(document: dict[str, Any], inputs: Any) -> str:
    """What to do if a forward showed nothing: give it inputs; if it had some, why it failed."""
    if inputs is None:
        return "pass inputs=(…), the arguments of one forward"
    return "; ".join(document.get("warnings", [])[-1:]) or "inputs showed no operation"


def _json(document: object) -> str:
    try:
        return json.dumps(document, indent=1)
    except (TypeError, ValueError) as err:
        raise UsageError(f"the model is no JSON document: {err}") from err


def _name(config: Any) -> str:
    """The name that a config was loaded by, or its type."""
    return os.path.basename(str(getattr(config, "name_or_path", "")).rstrip("/\\")) or str(config.model_type)


def is_module(model: object) -> bool:
    """Whether it is a torch.nn.Module. Nothing is before torch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _is_script(module: object) -> bool:
    jit = getattr(sys.modules.get("torch"), "jit", None)
    return jit is not None and isinstance(module, jit.ScriptModule)
