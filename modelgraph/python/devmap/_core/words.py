"""Keywords of Python as flags of the command line, and the program's messages in keywords."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from .errors import UsageError
from .flags import COMMANDS, KINDS, OTHERS, VALUES, PlanFlags


def words(command: str, flags: Mapping[str, object]) -> list[str]:
    """The flags of a command, one word each. None leaves a flag out."""
    known = COMMANDS[command]
    found: list[str] = []
    for name, value in flags.items():
        if name not in known:
            raise UsageError(_unknown(command, name, known))
        if value is not None:
            option = "--" + name.replace("_", "-")
            found += [f"{option}={text}" for text in _texts(name, known[name], value)]
    return found


def _unknown(command: str, name: str, known: Iterable[str]) -> str:
    plain = name.replace("-", "_").lower()
    near = [OTHERS[plain]] if plain in OTHERS else difflib.get_close_matches(plain, known, n=1)
    hint = f"did you mean {near[0]}?" if near and near[0] in known else "known: " + ", ".join(known)
    return f"devmap.{command} takes no {name!r}: {hint}"


def _texts(name: str, kind: str, value: Any) -> list[str]:
    """The values of a flag: a list of a flag that may be repeated, else one."""
    if kind == "bool":
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r}: it is True or False")
        return ["true" if value else "false"]
    if isinstance(value, bool):
        raise UsageError(f"{name}={value!r}: it takes a value, not True or False")
    if name == "pin" and isinstance(value, Mapping):
        return [f"{layer}={device}" for layer, device in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return _several(name, kind, sorted(value) if isinstance(value, (set, frozenset)) else list(value))
    if kind == "duration" and isinstance(value, (int, float)):
        return [f"{value}s"]
    if isinstance(value, os.PathLike):
        return [os.fsdecode(value)]
    if hasattr(value, "__index__"):  # an integer of numpy or torch too
        return [str(value.__index__())]
    if isinstance(value, (str, float)):
        return [str(value)]
    raise UsageError(f"{name}={value!r}: it takes no {type(value).__name__}")


def _several(name: str, kind: str, values: list[Any]) -> list[str]:
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


def row_keywords(typed: list[str]) -> PlanFlags:
    """The words of `devmap plan` as its keywords.

    >>> row_keywords(["--gpus", "4", "--strategy", "fsdp", "--loss-only"])
    {'gpus': 4, 'strategy': 'fsdp', 'loss_only': True}
    """
    found: dict[str, object] = {}
    for i, word in enumerate(typed):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        key = name.replace("-", "_")
        if not equals and i + 1 < len(typed) and not typed[i + 1].startswith("--"):
            value = typed[i + 1]
        found[key] = value_of(KINDS.get(key, "string"), value)
    return cast(PlanFlags, found)


def value_of(kind: str, typed: str) -> object:
    if kind == "bool":
        return typed != "false"
    if typed.startswith("'"):
        typed = typed[1:-1].replace("'\\''", "'")
    return int(typed) if typed.isdigit() else typed


# A flag in a sentence, and the word after it, which may be its value.
_SAID = re.compile(
    r"--(?P<name>[a-z][a-z0-9-]*)"
    r"""(?:(?P<gap>[= ])(?P<value>"[^"]*"|'(?:[^']|'\\'')*'|[^\s:;()"',]+(?:,[^\s:;()"',]+)*))?"""
)
_NUMBER = re.compile(r"\d[\w.]*(?:,\d[\w.]*)*")


def keywords(text: str) -> str:
    """A message of the program with keywords in place of flags.

    >>> print(keywords('--mode "trane" is unknown; --gpus 4 --gpu h100-80gb; only --mode infer generates; add --ema'))
    mode="trane" is unknown; gpus=4, gpu='h100-80gb'; only mode='infer' generates; add ema=True
    """
    return re.sub(r"\0 (?=[a-z_]+=)", ", ", _SAID.sub(_keyword, text.replace("\0", ""))).replace("\0", "")


def _keyword(match: re.Match[str]) -> str:
    """One flag as a keyword, with a zero byte after its value."""
    name, gap, value = match["name"].replace("-", "_"), match["gap"], match["value"]
    kind = KINDS.get(name)
    if kind is None:
        return match[0]
    if kind == "bool":
        if gap == "=":
            return f"{name}={value == 'true'}\0"
        rest = "" if value is None else gap + value
        return name + rest if match.string[match.end("name") :].startswith(":") else f"{name}=True\0{rest}"
    if value is None:
        return name
    tail = ""
    if value[-1] == "." and value[0] not in "\"'":
        value, tail = value[:-1], "."
    if not (gap == "=" or value[0] in "\"'" or _NUMBER.fullmatch(value) or _is_value(name, kind, value)):
        return name + gap + value + tail
    if value[0] not in "\"'" and not value.isdigit():
        value = repr(value)
    return f"{name}={value}\0{tail}"


def _is_value(name: str, kind: str, value: str) -> bool:
    """Whether the word after a flag is its value, and not the next word of a sentence."""
    if name in VALUES:
        return value in VALUES[name]
    return kind in ("stringSlice", "stringArray") and re.search(r"[_,=*-]", value) is not None
