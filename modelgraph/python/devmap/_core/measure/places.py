"""Where a tensor was made: the module that ran, and the line of code."""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import os
import re
import sys
import traceback
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch.fx import traceback as fx_traceback
from torch.nn.modules import module as hooks

_FOLDERS = [os.path.dirname(torch.__file__), *(os.path.dirname(os.path.dirname(file)) for file in (__file__, os.path.abspath(__file__)))]
_OWN = tuple(folder + os.sep for folder in _FOLDERS)


def _traced() -> str:
    """The line that an operation of an exported program had in the code that was exported."""
    meta = fx_traceback.current_meta if fx_traceback.has_preserved_node_meta() else {}
    found = re.findall(r'File "([^"]*)", line (\d+)', str(meta.get("stack_trace", "")))
    return f"{os.path.basename(found[-1][0])}:{found[-1][1]}" if found else ""


class Place(NamedTuple):
    """A module and a line. backward is the operation of autograd that ran, empty in a forward."""

    module: str
    line: str
    backward: str
    operation: str


def line_of(frame: Any, depth: int = 80) -> str:
    """The innermost line of code that is not torch's, as file:line."""
    outer = None
    while frame is not None and depth:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN) and not name.startswith("<"):
            if os.sep + "contextlib.py" not in name and os.sep + "functools.py" not in name:
                return f"{os.path.basename(name)}:{frame.f_lineno}"
        outer, frame, depth = frame, frame.f_back, depth - 1
    return "" if outer is None else f"{os.path.basename(outer.f_code.co_filename)}:{outer.f_lineno}"


def line_of_error(error: BaseException) -> str:
    """The innermost line of code outside torch that an error came through."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        name = frame.f_code.co_filename
        if not name.startswith(_OWN) and not name.startswith("<"):
            return f"{os.path.basename(name)}:{number}"
    return ""


class Places:
    """Follows which module runs. In backward, the place of an operation is that of its forward."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.stack: list[str] = []
        self.forward: dict[int, tuple[str, str]] = {}  # by the sequence number of autograd's node
        self.kept: list[Any] = []  # named modules, so that no id is used again

    def following(self) -> ExitStack:
        """Hooks on all modules, until the stack closes."""
        stack = ExitStack()
        stack.callback(hooks.register_module_forward_pre_hook(self._enter).remove)
        stack.callback(hooks.register_module_forward_hook(self._leave, always_call=True).remove)
        return stack

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        if id(module) not in self.names and not self.stack:
            for name, child in module.named_modules():
                self.names.setdefault(id(child), f"{name or '(model)'} ({type(child).__name__})")
                self.kept.append(child)
        self.stack.append(self.names.get(id(module)) or type(module).__name__)

    def _leave(self, module: torch.nn.Module, *_: Any) -> None:
        if self.stack:
            self.stack.pop()

    def here(self, operation: str) -> Place:
        """The place of the operation that runs."""
        line = _traced() or line_of(sys._getframe(2))
        module = self.stack[-1] if self.stack else ""
        node = torch._C._current_autograd_node()
        if node is None:
            self.forward.setdefault(torch.autograd._get_sequence_nr() - 1, (module, line))
            return Place(module, line, "", operation)
        if not module:
            module, line = self.forward.get(node._sequence_nr(), (module, line))
        return Place(module, line, node.name(), operation)
