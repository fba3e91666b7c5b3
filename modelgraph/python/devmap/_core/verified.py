"""devmap.verify: whether a module's forward and backward run under a device map, seen without a GPU."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Callable, Union

from .errors import DevmapError, UsageError

# What autograd says in a process that was forked after a backward on a GPU (torch/csrc/autograd/python_engine.cpp).
_THREADS = "Unable to handle autograd's threading"
_GPUS = 126  # that torch can number: c10/core/Device.h, DeviceIndex is int8_t
_SAYS = 10  # seconds between two lines of a long step
_SECONDS = 1800  # a step on tensors without data that takes longer hangs


class Verified:
    """The result of devmap.verify, true if the step runs under the map.

    If it does not, operation reads tensors on two devices, in the forward of module at line. assumed lists questions
    that the forward asks of data, with the answer that was assumed.

    >>> import devmap, torch  # doctest: +SKIP
    >>> net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))  # doctest: +SKIP
    >>> bool(devmap.verify(net, {"0": 0, "1": 1}, inputs=(torch.zeros(2, 8),)))  # doctest: +SKIP
    True
    """

    __module__ = "devmap"

    def __init__(self, meeting: Any, assumed: list[str], offloads: bool = False) -> None:
        self.module, self.line, self.operation, devices = (meeting or ("", "", "", ()))[:4]
        self.devices = tuple(devices)
        self.ok, self.assumed, self._offloads = meeting is None, assumed, offloads

    def __bool__(self) -> bool:
        return self.ok

    @property
    def message(self) -> str:
        """The verdict in a sentence."""
        if self.ok:
            return "the forward and the backward run under the map"
        where = f"{self.operation} at {self.line} in {self.module or 'the model'}"
        if self.operation == TIES:
            return f"a step trains copies of one parameter apart: {self.module} are on {' and '.join(self.devices)}; put them on one"
        if self.operation.endswith(LOST):
            return f"the forward fails under the map: {where} writes on {self.devices[1]}, and the caller, who reads it later, has it on {self.devices[0]}: return it instead"
        if self.devices[0].startswith("stage "):
            return f"the forward fails under the map: {where} is of {self.devices[1]}, and {self.devices[0]} runs: tensors cross GPUs where a stage begins"
        away = "; an offloaded weight is on a GPU only while its own module runs" if self._offloads and "cpu" in self.devices else ""
        return f"the forward fails under the map: {where} reads tensors on {' and '.join(self.devices)}{away}"

    def __repr__(self) -> str:
        return f"<devmap.Verified: {self.message}>"


LOST = " into a hook's copy of an argument"  # ends the operation of a write into an argument that Accelerate moved
TIES = "ties-apart"  # the operation of a Verified whose tied parameters are apart
ENGINES = ("accelerate", "torch")


def verify(module: Any, device_map: Mapping[str, Union[int, str]], inputs: Any, engine: str = "accelerate") -> Verified:
    """As devmap.verify says."""
    from .exporter import forward
    from .exporter.module import ties_of, unwrap

    if engine not in ENGINES:
        raise UsageError(f"engine={engine!r}: verify knows 'accelerate' (a device map) and 'torch' (stages of torch.distributed.pipelining)")
    module, _ = unwrap(module)
    device_map = {key: _device(key, device, engine) for key, device in device_map.items()}
    given = inputs if inputs is not None else forward.usual(module)
    if given is None:
        raise DevmapError("verify: pass inputs=(…), the arguments of one forward")
    args, kwargs = forward.arguments(given)
    # torch.distributed.pipelining traces the module on one device, where a hook that moves a tensor to another one ends the trace.
    ran = run(module, {"": 0}, args, kwargs, engine=engine, backward=False) if engine == "torch" else {"meetings": []}
    if not ran["meetings"]:
        ran = run(module, device_map, args, kwargs, engine=engine)
    if not ran["meetings"] and ran["failed"]:
        raise DevmapError(f"verify: the forward fails by itself: {ran['failed']}")
    if not ran["meetings"] and (engine == "accelerate" or forward.usual(module) is None):
        ran["meetings"] += _apart(ties_of(module), device_map, "cuda:" if engine == "accelerate" else "stage ")
    return Verified(ran["meetings"][0] if ran["meetings"] else None, ran["assumed"], any(isinstance(device, str) for device in device_map.values()))


def _apart(ties: list[list[str]], device_map: Mapping[str, Union[int, str]], kind: str) -> list[Any]:
    """The ties whose names are on several devices (planner/devicemap/place.go: ties)."""
    found = []
    for names in ties:
        above = [max((key for key in device_map if not key or f"{name}.".startswith(f"{key}.")), key=len, default="") for name in names]
        devices = [f"{kind}{device}" if isinstance(device, int) else device for device in dict.fromkeys(device_map.get(key, "") for key in above)]
        if len(devices) > 1:
            found.append((" and ".join(names), "", TIES, devices))
    return found


def _device(key: str, device: Any, engine: str) -> Union[int, str]:
    """A device of a map: the number of a GPU, "cpu" or "disk". "cuda:1" and torch.device("cuda:1") are GPU 1."""
    said = str(device)
    if said in ("cpu", "disk") and engine == "accelerate":
        return said
    number = said[len("cuda:") :] if said.startswith("cuda:") else "0" if said == "cuda" else said
    if isinstance(device, bool) or not (number.isascii() and number.isdigit()) or int(number) >= _GPUS:
        form = 'a GPU by its number (0, 1, …), "cpu" or "disk"' if engine == "accelerate" else "a stage by its number (0, 1, …)"
        raise UsageError(f"verify: the map puts {key or 'the model'!r} on {device!r}: name {form}")
    return int(number)


def stages_of(document: Mapping[str, Any]) -> dict[str, Union[int, str]]:
    """The stage of each module of a plan. Keys of a unit that no single module holds are on the GPU of its stage."""
    stages = document.get("stages") or [{"device": device, "units": ()} for device in sorted({*document["device_map"].values()})]
    found = {unit: number for number, stage in enumerate(stages) for unit in stage["units"]}
    of_gpu = {stage["device"]: number for number, stage in reversed(list(enumerate(stages)))}
    for key, device in document["device_map"].items():
        if not any(key == unit or key.startswith(unit + ".") for unit in found):
            found[key] = of_gpu.get(device, 0)
    return found


def run(module: Any, device_map: Mapping[str, Union[int, str]], args: tuple, kwargs: dict, **how: Any) -> dict[str, Any]:
    """A step under a map, in a process of its own where the system can fork: torch has other settings there."""
    from .exporter import quantised
    from .exporter.module import copy_of
    from .measure import placed

    if quantised.any_in(module):  # their kernels ask for data
        module = copy_of(module)

    def step(alone: bool, **more: Any) -> dict[str, Any]:
        return placed.step(module, device_map, args, kwargs, alone=alone, **{**how, **more})._asdict()

    if not hasattr(os, "fork") or sys.platform == "darwin":
        return step(False)
    found = _forked(step)
    if _THREADS not in found["failed"]:
        return found
    import torch

    if not torch.cuda.is_available():  # devmap.measure was here
        return step(False)
    found = _forked(lambda alone: step(alone, backward=False))
    found["assumed"].append("a backward ran before in this process, so that only the forward could be tried")
    return found


def _forked(step: Callable[[bool], dict[str, Any]]) -> dict[str, Any]:
    return ended(started(step))


def started(step: Callable[[bool], dict[str, Any]]) -> tuple[int, int]:
    """A process that runs the step, and the pipe with its result."""
    import warnings

    reader, writer = os.pipe()
    with warnings.catch_warnings():  # other threads: the child starts none, and takes no lock of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reader)
        _child(step, writer)
    os.close(writer)
    return child, reader


def ended(process: tuple[int, int], said: str = "") -> dict[str, Any]:
    """The result of a process. said is printed when it takes long."""
    import select
    import signal

    child, reader = process
    text, waited = b"", 0
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while waited < _SECONDS:
            if not select.select([pipe], [], [], _SAYS)[0]:
                waited += _SAYS
                if said:
                    print(f"{said}: {waited} s so far", file=sys.stderr, flush=True)
                continue
            piece = pipe.read(1 << 16)
            if not piece:
                break
            text += piece
        else:
            os.kill(child, signal.SIGKILL)
            text = b""
    _, status = os.waitpid(child, 0)
    if not text:
        raise DevmapError(f"verify: the process that runs the step ended with status {status} and no result")
    found: dict[str, Any] = json.loads(text)
    if "error" in found:
        raise DevmapError(found["error"])
    return found


def _child(step: Callable[[bool], dict[str, Any]], writer: int) -> None:
    """Runs the step in a forked process, which has no GPU and one thread, and never returns."""
    status = 1
    try:
        import torch

        torch.set_num_threads(1)
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        try:
            text = json.dumps(step(True))
        except DevmapError as error:
            text = json.dumps({"error": str(error)})
        except BaseException as error:  # noqa: BLE001 - printed by the parent
            text = json.dumps({"error": f"verify: {type(error).__name__}: {str(error).strip()[:300]}"})
        data = text.encode()
        while data:
            data = data[os.write(writer, data) :]
        status = 0
    finally:
        os._exit(status)
