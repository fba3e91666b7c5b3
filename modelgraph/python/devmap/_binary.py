"""The Go program: where it is, and how it is run."""

from __future__ import annotations

import os
import sys

from ._errors import DevmapError, Infeasible, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE = "DEVMAP_BINARY"


def find() -> str:
    """The program that this package carries, or that DEVMAP_BINARY names."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    name = "devmap.exe" if os.name == "nt" else "devmap"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", name)
    if not os.path.exists(path):
        raise DevmapError(
            f"{path} is not there: this copy of the package carries no program, as a checkout's does "
            f"(install its wheel, or set {VARIABLE} to a devmap that was built)",
            126,
        )
    return path


def cannot_start(path: str, err: OSError) -> DevmapError:
    """Why the program did not start, with a message that says what to do."""
    import errno
    import platform

    machine = f"{platform.system()} on {platform.machine()}"
    wrong = (errno.ENOEXEC, getattr(errno, "EBADARCH", -1), getattr(errno, "EBADMACHO", -1))
    if err.errno in wrong or getattr(err, "winerror", None) in (193, 216):
        why = f"it was built for another system or processor than {machine}"
    elif isinstance(err, FileNotFoundError) and os.path.exists(path):
        why = f"it is linked to another C library than that of {machine}"
    elif isinstance(err, FileNotFoundError):
        why = f"it is not there (named by {VARIABLE})"
    elif isinstance(err, PermissionError):
        why = "it may not be executed: its file mode, or a file system that is mounted noexec"
    else:
        why = str(err)
    hint = "" if os.environ.get(VARIABLE) else ": install the wheel that is for this machine"
    return DevmapError(f"{path} cannot be started: {why}{hint}", 126, (path,))


class Ran:
    """What a run of the program printed, and how it ended."""

    __slots__ = ("command", "status", "stderr", "stdout")

    def __init__(self, command: Sequence[str], status: int, stdout: str, stderr: str) -> None:
        self.command, self.status, self.stdout, self.stderr = tuple(command), status, stdout, stderr

    def error(self) -> DevmapError:
        """The error that the program printed as it ended: the line that begins with its name, and those after it."""
        if self.status < 0:
            return DevmapError(f"{self.command[0]} was ended by signal {-self.status}", self.status, self.command)
        lines = self.stderr.splitlines()
        begin = next((i for i, line in enumerate(lines) if line.startswith("devmap: ")), 0)
        said = lines[begin:] or [f"ended with status {self.status} and said nothing"]
        said[0] = said[0].removeprefix("devmap: ")
        if self.status == 3:
            from ._words import remedy

            helps = [line for line in said[1:] if line.startswith("  ")]
            rest = [line for line in said if line not in helps]
            notes = [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]
            return Infeasible("\n".join(rest), [remedy(line.strip()) for line in helps], self.command, notes)
        if self.status == 2:
            return UsageError("\n".join(said), self.command)
        return DevmapError("\n".join(said), self.status, self.command)


def run(arguments: Sequence[str], allowed: Sequence[int] = (0,)) -> Ran:
    """Runs the program to its end. An exit status that is not allowed is raised as an error."""
    import subprocess

    command = [find(), *arguments]
    if any("\0" in word for word in arguments):
        word = next(word for word in arguments if "\0" in word)
        raise UsageError(f"{word!r} has a zero byte, which no argument of a program can hold")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as err:
        raise cannot_start(command[0], err) from err
    ran = Ran(command, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
    if ran.status not in allowed:
        raise ran.error()
    return ran


def replace(arguments: Sequence[str]) -> int:
    """Becomes the program, as the command line `devmap`; the status where a system cannot do that."""
    try:
        path = find()
        if os.name == "nt":  # exec there would hand the console back before the program has ended
            return _spawn([path, *arguments])
        _default_signals()
        os.execv(path, ["devmap", *arguments])
    except DevmapError as err:
        print(f"devmap: {err}", file=sys.stderr)
        return err.status
    except OSError as err:
        print(f"devmap: {cannot_start(path, err)}", file=sys.stderr)
        return 126
    raise AssertionError("execv came back")


def _default_signals() -> None:
    """Python ignores some signals, and what is ignored stays so through exec, for the program and what it starts."""
    import signal

    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def _spawn(command: Sequence[str]) -> int:
    """Runs the program on this console. Ctrl-C reaches both processes: it is the program's to end by."""
    import signal
    import subprocess

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(command).wait()
    except OSError as err:
        raise cannot_start(command[0], err) from err
