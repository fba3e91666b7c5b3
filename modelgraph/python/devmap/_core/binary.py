"""The Go program: where it is, and how it is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from .errors import DevmapError, UsageError

VARIABLE = "DEVMAP_BINARY"


def find() -> str:
    """The program that this package carries, or that DEVMAP_BINARY names."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    name = "devmap.exe" if os.name == "nt" else "devmap"
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_bin", name)
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
    """The output of a run of the program, and its exit status."""

    __slots__ = ("command", "status", "stderr", "stdout")

    def __init__(self, command: Sequence[str], status: int, stdout: str, stderr: str) -> None:
        self.command, self.status, self.stdout, self.stderr = tuple(command), status, stdout, stderr

    def error(self) -> DevmapError:
        """The error that the program printed."""
        from .answers import error_of

        unknown = re.search(r"^devmap: unknown (?:flag: (--\S+)|(command \S+))", self.stderr, re.MULTILINE)
        if self.status == 2 and unknown:  # this package knows what it passes
            return _another(self.command[0], f"it does not know {(unknown[1] or unknown[2]).rstrip(':')}")
        return error_of(self.command, self.status, self.stdout, self.stderr)


def command_of(arguments: Sequence[str]) -> list[str]:
    """The program, of this package's version, with arguments."""
    for word in arguments:
        if "\0" in word:
            raise UsageError(f"{word!r} has a zero byte, which no argument of a program can hold")
    path = find()
    if os.environ.get(VARIABLE):
        _check_version(path)
    return [path, *arguments]


def run(arguments: Sequence[str], allowed: Sequence[int] = (0,), fed: bytes = b"") -> Ran:
    """Runs the program to its end. An exit status that is not allowed is raised as an error. fed is its input."""
    import subprocess

    command = command_of(arguments)
    try:
        done = subprocess.run(command, input=fed, capture_output=True, check=False)
    except OSError as err:
        raise cannot_start(command[0], err) from err
    return _ended(command, done.returncode, done.stdout, done.stderr, allowed)


async def run_async(arguments: Sequence[str], allowed: Sequence[int] = (0,)) -> Ran:
    """As run, in an event loop. Cancelling the task kills the program."""
    import asyncio
    from subprocess import DEVNULL, PIPE

    command = command_of(arguments)
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except OSError as err:
        raise cannot_start(command[0], err) from err
    try:
        stdout, stderr = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _ended(command, process.returncode or 0, stdout, stderr, allowed)


def run_loud(arguments: Sequence[str]) -> Ran:
    """Runs the program to its end, and shows its stderr as it comes. Ctrl-C is the program's to end by."""
    import subprocess

    command = command_of(arguments)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as err:
        raise cannot_start(command[0], err) from err
    import threading

    lines: list[bytes] = []

    def show() -> None:
        for line in process.stderr or ():
            lines.append(line)
            sys.stderr.write(line.decode("utf-8", "replace"))

    reader = threading.Thread(target=show, daemon=True)
    reader.start()
    interrupted: KeyboardInterrupt | None = None
    while True:
        try:
            stdout = process.stdout.read() if process.stdout else b""
            process.wait()
            break
        except KeyboardInterrupt as err:
            if interrupted:
                process.kill()
                raise
            interrupted = err
    reader.join()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
    return _ended(command, process.returncode, stdout, b"".join(lines), range(256))


def _ended(command: list[str], status: int, stdout: bytes, stderr: bytes, allowed: Sequence[int]) -> Ran:
    ran = Ran(command, status, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))
    if ran.status not in allowed:
        raise ran.error()
    return ran


_checked: dict[tuple[str, int], str] = {}


def _check_version(path: str) -> None:
    """Refuses a program of another release than this package. Builds without a release are taken as they are."""
    from .. import __version__ as own

    version = _version_of(path)
    if version is None:
        raise DevmapError(f"{path} is not devmap: it does not tell a version ({VARIABLE} names it)", 126, (path,))
    release = re.compile(r"v?(\d+\.\d+\.\d+)$")
    theirs, ours = release.match(version), release.match(own)
    if theirs and ours and theirs[1] != ours[1]:
        raise _another(path, "")


def _version_of(path: str) -> str | None:
    """The version that a program tells, asked once for each file."""
    import subprocess

    try:
        key = (path, os.stat(path).st_mtime_ns)
        if key not in _checked:
            done = subprocess.run([path, "version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            told = re.match(r"devmap (\S+)", done.stdout.decode("utf-8", "replace"))
            if done.returncode or not told:
                return None
            _checked[key] = told[1]
    except OSError as err:
        raise cannot_start(path, err) from err
    return _checked[key]


def _another(path: str, why: str) -> DevmapError:
    """The error of a program that is of another version than this package."""
    from .. import __version__ as own

    said = f"{path} is devmap {_version_of(path) or '(unknown)'}, and this package is {own}"
    how = f"unset {VARIABLE}, or let it name a program of this version"
    if not os.environ.get(VARIABLE):
        how = "install the package again"
    return DevmapError(f"{said}{': ' if why else ''}{why}: {how}", 126, (path,))


def replace(arguments: Sequence[str]) -> int:
    """Becomes the program, as the command line `devmap`; the status where a system cannot do that."""
    path = ""
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
