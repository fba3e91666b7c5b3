"""Keywords of Python to flags of the command line, and the remedies that devmap tells back to keywords."""

from __future__ import annotations

import os
import re

from . import _flags
from ._errors import Remedy, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def words(command: str, flags: Mapping[str, object]) -> list[str]:
    """The flags of a command, one word each. What is None is left out."""
    known = _flags.COMMANDS[command]
    found: list[str] = []
    for name, value in flags.items():
        if name not in known:
            raise UsageError(_unknown(command, name, known))
        if value is not None:
            option = "--" + name.replace("_", "-")
            found += [f"{option}={text}" for text in _texts(name, known[name], value)]
    return found


def _unknown(command: str, name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    hint = f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)
    return f"devmap.{command} takes no {name!r}: {hint}"


def _texts(name: str, kind: str, value: object) -> list[str]:
    """The values of a flag: a list of a flag that may be repeated, else one."""
    if kind == "bool":
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r}: it is True or False")
        return ["true" if value else "false"]
    if isinstance(value, bool):
        raise UsageError(f"{name}={value!r}: it takes a value, not a switch")
    if name == "pin" and isinstance(value, dict):
        return [f"{layer}={device}" for layer, device in value.items()]
    if isinstance(value, (list, tuple)):
        return _several(name, kind, value)
    if kind == "duration" and isinstance(value, (int, float)):
        return [f"{value}s"]
    if isinstance(value, (str, int, float, os.PathLike)):
        return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    raise UsageError(f"{name}={value!r}: a {type(value).__name__} is no value of a flag")


def _several(name: str, kind: str, values: list[object] | tuple[object, ...]) -> list[str]:
    if not values:
        raise UsageError(f"{name}={values!r}: it is empty")
    if name == "together":
        groups = values
        if all(isinstance(value, str) and "," not in value for value in values):
            groups = [values]
        return [",".join(map(str, group)) if isinstance(group, (list, tuple)) else str(group) for group in groups]
    if name in ("gpus", "reserve"):  # a capacity each, or bytes to leave free: numbers are bytes
        return [",".join(f"{value}B" if isinstance(value, int) else str(value) for value in values)]
    if kind == "stringArray":
        return [str(value) for value in values]
    return [",".join(map(str, values))]


# A flag of a remedy: its name, and a value where it has one, quoted as a shell reads it.
_FLAG = re.compile(r"--([a-z0-9-]+)(?:[= ]('(?:[^']|'\\'')*'|(?!--)[^\s'(][^\s]*))?")
_NOTES = re.compile(r" \(without ([^()]*)\)")


def remedy(text: str) -> Remedy:
    """A line as `--batch 4 --strategy ddp (gradient accumulation) (without --schedule): fullest GPU …, fits`."""
    typed = text.rpartition(": fullest GPU ")[0] or text
    flags: dict[str, object] = {}
    for without in _NOTES.findall(typed):
        for name, _ in _FLAG.findall(without):
            flags[name.replace("-", "_")] = None
    for name, value in _FLAG.findall(typed.partition(" (")[0]):
        key = name.replace("-", "_")
        flags[key] = _value(_flags.COMMANDS["plan"].get(key, "string"), value)
    return Remedy(flags, text)


def _value(kind: str, typed: str) -> object:
    if kind == "bool":
        return typed != "false"
    if typed.startswith("'"):
        typed = typed[1:-1].replace("'\\''", "'")
    return int(typed) if typed.isdigit() else typed
