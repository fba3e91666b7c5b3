"""What a model may be: a path or a name, a config of Transformers, a module of torch, a model.json in memory."""

from __future__ import annotations

import os
import sys

from ._errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Model:
    """A model as the program reads it: a path, in a temporary folder where it was in memory.

    The folder lives as long as this object: what was planned of it can be read again until then.
    """

    __slots__ = ("__weakref__", "folder", "path")

    def __init__(self, model: object, inputs: Any = None, no_split: Any = None, ran: bool = True) -> None:
        """inputs and no_split are those of devmap.export; ran: what is asked counts operations, not weights alone."""
        self.folder = ""
        module = _is_module(model)
        if not module and (inputs is not None or no_split is not None):
            said = "inputs" if inputs is not None else "no_split"
            raise UsageError(
                f"{said} is of a torch.nn.Module, which is exported; this model is a {type(model).__name__}"
            )
        if isinstance(model, (str, os.PathLike)):
            path = os.fspath(model)
            if not isinstance(path, str):
                path = os.fsdecode(path)
            self.path = path
        elif isinstance(model, dict):
            self.path = self._write(str(model.get("name", "model")), "model.json", _json(model))
        elif hasattr(model, "to_json_string") and hasattr(model, "model_type"):
            self.path = os.path.dirname(self._write(_name(model), "config.json", model.to_json_string()))
        elif module:
            from ._export import export

            document = export(model, inputs=inputs, no_split=no_split)  # type: ignore[arg-type]
            if ran and not any("op" in layer or "declared" in layer for layer in document["layers"]):
                raise UsageError(
                    f"what {type(model).__name__} computes is not known, so activations cannot be counted: "
                    f"{_seen(document, inputs)}, or mode='load', which plans the weights alone"
                )
            self.path = self._write(type(model).__name__, "model.json", _json(document))
        else:
            raise UsageError(
                f"a {type(model).__module__}.{type(model).__name__} is no model: a path, a name, a config of "
                "Transformers, a torch.nn.Module, or what devmap.export returns"
            )

    def _write(self, name: str, file: str, text: str) -> str:
        import shutil
        import tempfile
        import weakref

        self.folder = tempfile.mkdtemp(prefix="devmap-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        plain = "".join(char if char.isalnum() or char in "._-" else "-" for char in name).strip(".")
        folder = os.path.join(self.folder, plain or "model")
        os.mkdir(folder)
        path = os.path.join(folder, file)
        with open(path, "w", encoding="utf-8") as target:
            target.write(text)
        return path


def _seen(document: dict[str, Any], inputs: Any) -> str:
    """What to do where a forward showed nothing: give it inputs; where it had some, why it could not be seen."""
    if inputs is None:
        return "pass inputs=(…), what one forward takes"
    return "; ".join(document.get("warnings", [])[-1:]) or "inputs showed no operation"


def _json(document: object) -> str:
    import json

    try:
        return json.dumps(document, indent=1)
    except (TypeError, ValueError) as err:
        raise UsageError(f"the model is no JSON document: {err}") from err


def _name(config: Any) -> str:
    """What a config was loaded by, or its type."""
    return os.path.basename(str(getattr(config, "name_or_path", "")).rstrip("/\\")) or str(config.model_type)


def _is_module(model: object) -> bool:
    """Whether it is a torch.nn.Module: where torch was not imported, nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)
