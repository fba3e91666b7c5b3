"""What `devmap check --run` starts: the model of a config on the meta device, and devmap.verify under a map.

Reads a JSON object on stdin, and prints one: run's words, or why it could not be run.
"""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from .errors import DevmapError


def built(config: dict[str, Any], kind: str) -> Any:
    """The model that a config describes, on the meta device. kind is its class, empty: that of the config."""
    library = "diffusers" if "_class_name" in config else "transformers"
    kind = kind or str(config.get("_class_name") or "".join(config.get("architectures", ())[:1]))
    try:
        module = __import__(library)
    except ImportError as error:
        raise DevmapError(f"{sys.executable} has no {library}: install it there, or name another Python by DEVMAP_PYTHON ({error})") from None
    version = f"{library} {module.__version__}"
    found = getattr(module, kind, None) if kind.isidentifier() else None
    base = module.ModelMixin if library == "diffusers" else module.PreTrainedModel
    if not isinstance(found, type) or not issubclass(found, base):
        raise DevmapError(f"{version} has no model class {kind!r}: --run runs no code of a model's repository; in Python, devmap.verify(model, map) runs any module")
    import torch

    with torch.device("meta"):
        if library == "diffusers":
            return found.from_config({name: value for name, value in config.items() if name not in ("_class_name", "_diffusers_version")})
        read = _read(module, config)
        kept = read.dtype if isinstance(read.dtype, torch.dtype) and read.dtype.itemsize > 1 else torch.float32
        return found._from_config(read, dtype=kept)


def _read(transformers: Any, config: dict[str, Any]) -> Any:
    """The config as Transformers reads it from a file. A quantised layer has the names and the place of a plain one."""
    import tempfile

    plain = {name: value for name, value in config.items() if name not in ("quantization_config", "auto_map")}
    with tempfile.TemporaryDirectory(prefix="devmap-") as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(plain, file)
        return transformers.AutoConfig.from_pretrained(folder)


def checked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to what devmap asks."""
    from . import verified
    from .exporter import forward

    module = built(json.loads(asked["config"]), asked["class"])
    if hasattr(module, "tie_weights"):
        module.tie_weights()
    inputs = forward.usual(module)
    if inputs is None:
        raise DevmapError(f"the inputs of a {type(module).__name__} are not known: in Python, devmap.verify(model, map, inputs=…) takes them")
    places = asked["map"]
    if asked["engine"] == "torch":
        places = verified.stages_of({"device_map": places, "stages": asked.get("stages")})
    try:
        found = verified.verify(module, places, inputs, asked["engine"])
    except DevmapError as error:
        if "fails by itself" not in str(error):
            raise
        given = ", ".join(f"{name} {tuple(one.shape)}" for name, one in inputs.items() if hasattr(one, "shape"))
        raise DevmapError(f"{error} (with {given}: in Python, devmap.verify(model, map, inputs=…) takes others)") from None
    operation = {name: getattr(found, name) for name in ("ok", "message", "module", "line", "operation", "devices", "assumed")}
    return {**operation, "versions": _versions(module)}


def _versions(module: Any) -> str:
    import torch

    library = sys.modules[type(module).__module__.partition(".")[0]]
    return f"{library.__name__} {library.__version__}, torch {torch.__version__}"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        asked = json.load(sys.stdin)
        try:
            import torch  # noqa: F401
        except ImportError:
            raise DevmapError(f"{sys.executable} has no torch: install it there, or name another Python by DEVMAP_PYTHON") from None
        answer = checked(asked)
    except DevmapError as error:
        answer = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - the command says it
        answer = {"error": f"{type(error).__name__}: {str(error).strip()[:500]}"}
    with answers:
        json.dump(answer, answers)


if __name__ == "__main__":
    main()
