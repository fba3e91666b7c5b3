"""The answer of devmap.measure: the log of a step, replayed in the program's caching allocator."""

# pyright: basic
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import collections
import json
from typing import Any, NamedTuple, Optional

from . import binary

FORMAT = "devmap.allocations/v1"


class Alive(NamedTuple):
    """Tensors of one place that exist at the peak. bytes is their sum."""

    bytes: int
    count: int
    module: str
    line: str
    operation: str
    backward: str


class MeasuredDevice:
    """Memory of one GPU of devmap.measure, in bytes.

    peak is what torch.cuda.max_memory_allocated would be, reserved an estimate of torch.cuda.max_memory_reserved, a range, end
    what is allocated when the step returns. alive lists the tensors at the peak by place, the largest first. module and
    line say where the peak was.
    """

    __module__ = "devmap"
    __slots__ = ("alive", "end", "index", "line", "module", "peak", "reserved")

    def __init__(self, index: int, replayed: dict[str, Any], ledger: Any) -> None:
        self.index = index
        self.peak: int = replayed["peak_allocated_bytes"]
        self.end: int = replayed["allocated_bytes"]
        self.reserved: tuple[int, int] = (replayed["least_reserved_bytes"], replayed["peak_reserved_bytes"])
        self.alive = _alive(ledger, replayed["peak_event"], index)
        born = [event[0] for event in ledger.log[: replayed["peak_event"] + 1] if event[0] > 0 and event[1] == index]
        place = ledger.births[born[-1] - 1] if born else None
        self.module: str = place.module if place else ""
        self.line: str = place.line if place else ""

    def __repr__(self) -> str:
        return f"<devmap.MeasuredDevice {self.index}: peak {_gib(self.peak)}, reserved {_gib(self.reserved[0])}–{_gib(self.reserved[1])}>"


class Measured:
    """What a step takes on GPUs that are not there.

    peaks has the peak of each GPU in bytes, devices a MeasuredDevice each. fits says that no peak exceeds its
    GPU. assumed lists the values that were assumed of data. unfollowed lists memory that was not followed: if it is not
    empty, exact is False, and a peak is a lower bound. kernels counts the calls of scaled_dot_product_attention by
    kernel. seconds is the time that measure took.
    """

    __module__ = "devmap"

    def __init__(self, machine: Any, ledger: Any, kernels: Any, values: Any, seconds: float) -> None:
        self.gpu: str = machine.name
        self.capacity: int = machine.bytes
        events = len(ledger.log)
        document = {"format_version": FORMAT, "devices": machine.count, "events": ledger.log}
        replayed = json.loads(binary.run(["replay", "-"], fed=json.dumps(document, separators=(",", ":")).encode()).stdout)
        self.devices = [MeasuredDevice(index, one, ledger) for index, one in enumerate(replayed["devices"])]
        self.events = events
        self.assumed: list[str] = list(values.assumed.values())
        self.unfollowed: list[str] = ledger.unfollowed
        self.kernels: dict[str, int] = dict(kernels)
        self.seconds = seconds

    @property
    def peaks(self) -> list[int]:
        """The peak of each GPU in bytes."""
        return [device.peak for device in self.devices]

    @property
    def exact(self) -> bool:
        """Whether no memory is known that was not followed."""
        return not self.unfollowed

    @property
    def fits(self) -> Optional[bool]:
        """Whether every GPU holds its peak; None if memory that was not followed may decide it."""
        if any(device.peak > self.capacity for device in self.devices):
            return False
        return True if self.exact else None

    def table(self, rows: int = 12) -> str:
        """The peaks, and the tensors alive at each."""
        lines = []
        for device in self.devices:
            low, high = device.reserved
            at = f" at {device.line}" if device.line else ""
            lines.append(f"GPU {device.index} ({self.gpu}): peak {_gib(device.peak)}{at}, reserved {_gib(low)} to {_gib(high)}")
            for one in device.alive[:rows]:
                place = " ".join(part for part in (one.line, one.module, one.backward) if part)
                lines.append(f"{one.bytes / 2**20:12,.1f} MiB {one.count:6}  {one.operation}  {place}")
            if len(device.alive) > rows:
                lines.append(f"{sum(one.bytes for one in device.alive[rows:]) / 2**20:12,.1f} MiB {sum(one.count for one in device.alive[rows:]):6}  {len(device.alive) - rows} other places")
        lines += [f"not followed: {one}" for one in self.unfollowed[:rows]]
        if len(self.unfollowed) > rows:
            lines.append(f"not followed: {len(self.unfollowed) - rows} other places")
        lines += [f"assumed: {one}" for one in self.assumed]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<devmap.Measured on {self.gpu}: peaks {', '.join(map(_gib, self.peaks))}>"


def _gib(size: int) -> str:
    return f"{size / 2**30:.3f} GiB"


def _alive(ledger: Any, last: int, device: int) -> list[Alive]:
    """The tensors that exist after an event, by place."""
    born: dict[int, int] = {}
    for event in ledger.log[: last + 1]:
        if event[0] < 0:
            born.pop(-event[0], None)
        elif event[0] > 0 and event[1] == device:
            born[event[0]] = event[2]
    places: dict[Any, list[int]] = collections.defaultdict(list)
    for number, size in born.items():
        places[ledger.births[number - 1]].append(size)
    found = [Alive(sum(sizes), len(sizes), place.module, place.line, place.operation, place.backward) for place, sizes in places.items()]
    return sorted(found, key=lambda one: -one.bytes)
