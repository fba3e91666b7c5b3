"""Errors of devmap, each with the exit status that the program ended with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class DevmapError(Exception):
    """devmap could not do what it was asked for.

    `status` is the program's exit status (1 error, 2 usage, 3 nothing fits, 4 a check failed), 126 where the program
    could not be started; `command` what was called, empty where nothing was.
    """

    def __init__(self, message: str, status: int = 1, command: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.command = tuple(command)

    @property
    def message(self) -> str:
        """What was said, without the first "devmap: "."""
        return str(self.args[0])


class UsageError(DevmapError, ValueError):
    """A flag that there is none of, or a value that is not taken."""

    def __init__(self, message: str, command: Sequence[str] = ()) -> None:
        super().__init__(message, 2, command)


class Remedy(dict[str, object]):
    """Flags under which it fits, as keywords: `devmap.plan(model, **{**flags, **remedy})`.

    A flag without use for the remedy is None there: leave it out. `text` is the line as devmap printed it.
    """

    def __init__(self, flags: dict[str, object], text: str) -> None:
        super().__init__(flags)
        self.text = text


class Infeasible(DevmapError):
    """Nothing fits. `remedies` are the smallest changes that would, `notes` what the answer assumes."""

    def __init__(
        self, message: str, remedies: Sequence[Remedy] = (), command: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> None:
        super().__init__(message, 3, command)
        self.remedies, self.notes = list(remedies), list(notes)

    def __str__(self) -> str:
        return "\n".join([self.message, *("  " + remedy.text for remedy in self.remedies)])
