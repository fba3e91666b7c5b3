"""Errors of devmap, each with the exit status of the program."""

from __future__ import annotations

from collections.abc import Sequence


class DevmapError(Exception):
    """devmap could not do what you asked for.

    status is the exit status of the program: 1 error, 2 usage, 3 nothing fits, 4 a check failed, 126 the program
    could not be started. command is what was called, empty if nothing was.

    >>> import devmap
    >>> try:
    ...     devmap.Plan.read("no-such-plan.json")
    ... except devmap.DevmapError as error:
    ...     print(error.status, error)
    1 no-such-plan.json: No such file or directory
    """

    __module__ = "devmap"  # as tracebacks name it

    def __init__(self, message: str, status: int = 1, command: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.command = tuple(command)

    @property
    def message(self) -> str:
        """The message without remedies."""
        return str(self.args[0])


class UsageError(DevmapError, ValueError):
    """A keyword that does not exist, or a value that it does not take.

    >>> import devmap
    >>> try:
    ...     devmap.plan("gpt2", gpus=[24, 24])
    ... except devmap.UsageError as error:
    ...     print(error)
    gpus=[24, 24]: numbers in a list are bytes: write gpus=['24GiB', '24GiB']
    """

    __module__ = "devmap"

    def __init__(self, message: str, command: Sequence[str] = ()) -> None:
        super().__init__(message, 2, command)


def spare(path: object, mark: str, what: str) -> None:
    """Refuses to replace a file without the mark of those that devmap writes."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # type: ignore[call-overload]
            text = file.read()
    except OSError:
        return  # nothing is there, or writing says what is wrong
    if text and mark not in text:
        raise DevmapError(f"{path} exists, and is no {what}: remove it, or name another file")
