"""The memory that torch held of each GPU in this process, compared with a plan.

The figures are those of torch's own allocator (torch.cuda.memory_stats), which keeps a peak at every allocation. They
are read, never reset: what a program measures itself stays as it is. The judgement is that of `devmap watch`.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .errors import DevmapError
from .plan import Device, Path, Plan, gib


PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"

# By how much a peak may differ from its prediction: a hundredth, or a granule of drivers.
SHARE = 100
LEAST = 2 << 20


class Held:
    """One GPU of the plan in this process. Bytes; `predicted` and `slack` are the least and the most predicted."""

    __slots__ = ("allocated", "cuda", "device", "predicted", "rank", "reason", "reserved", "slack", "verdict")

    def __init__(self, device: Device, cuda: int, rank: int, stats: dict[str, Any]) -> None:
        prediction = device.predicted
        low, high = prediction.peak_range_bytes
        self.device, self.cuda, self.rank = int(device.device), cuda, rank
        self.predicted, self.slack = (
            (int(low), int(high)),
            (int(prediction.slack_bytes[0]), int(prediction.slack_bytes[1])),
        )
        self.allocated = int(stats.get("allocated_bytes.all.peak", 0))
        self.reserved = int(stats.get("reserved_bytes.all.peak", 0))
        self.verdict, self.reason = PASS, ""

    def judge(self, before: int, out_of_memory: int, ended: bool) -> None:
        """Holds the peak to the prediction. before is what it was as training began; ended: it does not go on."""
        low, high = self.predicted
        allowed = max(LEAST, high // SHARE)
        said = f"{gib(self.allocated)} were allocated at most, {_span(low, high)} predicted"
        if out_of_memory:
            self.verdict, self.reason = FAIL, f"it ran out of memory: {said}"
        elif self.allocated > high + allowed and self.allocated <= before:
            self.verdict = INCONCLUSIVE
            self.reason = f"{said}: the most was held before the first step, so that of the steps is not known"
        elif self.allocated > high + allowed:
            self.verdict, self.reason = FAIL, f"{said}: {gib(self.allocated - high)} more"
        elif self.allocated < low - allowed:
            self.verdict = FAIL if ended else INCONCLUSIVE
            self.reason = f"{said}: {gib(low - self.allocated)} less{'' if ended else ', and training goes on'}"
        else:
            self.verdict, self.reason = PASS, f"{said}, at most {gib(allowed)} apart"

    def pool(self) -> str:
        """What the allocator took from the driver beyond its peak, and what the plan allows for."""
        low, high = self.slack
        cache = self.reserved - self.allocated
        said = f"the pool took {gib(cache)} beyond that, {_span(low, high)} allowed for"
        if cache > high + LEAST:
            return f"{said}: {gib(cache - high)} more"
        if cache < low - LEAST:
            return f"{said}: {gib(low - cache)} less"
        return said

    def __repr__(self) -> str:
        return f"GPU {self.device} (cuda:{self.cuda}, rank {self.rank}): {self.verdict}: {self.reason}; {self.pool()}"


def _span(low: int, high: int) -> str:
    return f"{gib(high)} were" if low == high else f"{gib(low)} to {gib(high)} were"


def printed(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Watch:
    """Holds a plan against what torch holds in this process, for as long as one training runs."""

    def __init__(self, plan: Plan | Path, steps: int, strict: bool, log: Callable[[str], object] | None) -> None:
        if steps < 2:
            raise ValueError(
                f"steps={steps}: a plan is of the second step and later, when the optimizer has its states"
            )
        self.plan = plan if isinstance(plan, Plan) else Plan.read(plan)
        self.steps, self.strict, self.log = steps, strict, log or printed
        self.report: list[Held] = []
        self.verdict, self.reason = INCONCLUSIVE, "nothing ran"
        self.before: dict[int, int] = {}
        self.first, self.judged, self.reported = 0, False, ""

    def begin(self, step: int) -> None:
        """Training begins, at a step that is not 0 where it goes on from a checkpoint."""
        self.first, self.judged, self.reported = step, False, ""
        self.before = {cuda: int(stats.get("allocated_bytes.all.peak", 0)) for cuda, stats in _stats()}

    def after(self, step: int, ended: bool = False) -> None:
        """A step was made, or the last one."""
        ran = step - self.first
        if not ended and (self.judged or ran < self.steps):
            return
        self.judged, self.report = True, []
        if ran < 2:
            self._say(INCONCLUSIVE, f"{ran} step{'s' if ran != 1 else ''} ran, and a plan is of the second and later")
            return
        self._judge(ended)
        if self.verdict == FAIL and self.strict:
            raise DevmapError(f"the plan for {self.plan.model!r} does not hold: {self.reason}", 4)

    def _judge(self, ended: bool) -> None:
        import torch

        rank, world = _place()
        pairs, why = self._pairs(rank, world)
        if why:
            self._say(INCONCLUSIVE, why)
            return
        for device, cuda in pairs:
            stats = torch.cuda.memory_stats(cuda)
            held = Held(device, cuda, rank, stats)
            held.judge(self.before.get(cuda, 0), int(stats.get("num_ooms", 0)), ended)
            self.report.append(held)
        verdicts = [held.verdict for held in self.report]
        verdict = FAIL if FAIL in verdicts else INCONCLUSIVE if INCONCLUSIVE in verdicts else PASS
        self._say(verdict, "\n".join(repr(held) for held in self.report))

    def _pairs(self, rank: int, world: int) -> tuple[list[tuple[Device, int]], str]:
        """Which device of the plan is which GPU of this process's, or why that is not known."""
        import torch

        devices = self.plan.devices
        planned = f"{len(devices)} GPU{'s' if len(devices) != 1 else ''}"
        if not torch.cuda.is_available():
            return [], f"there is nothing to hold: torch sees no GPU here, and the plan is for {planned}"
        if self.plan.strategy == "device-map":
            seen = torch.cuda.device_count()
            if world > 1:
                return [], f"the plan's device map is one process's, and {world} run"
            if seen < len(devices):
                return [], f"the plan is for {planned}, and torch sees {seen}"
            return [(device, int(device.device)) for device in devices], ""
        if world == 0:
            why = "torch.distributed was not begun (one process is strategy='device-map', on one GPU too)"
            return [], f"the plan is of {self.plan.strategy}, and {why}"
        if world != len(devices):
            return [], f"the plan is for {planned}, a process each, and {world} run{'s' if world == 1 else ''}"
        return [(devices[rank], torch.cuda.current_device())], ""

    def _say(self, verdict: str, reason: str) -> None:
        self.verdict, self.reason = verdict, reason
        if reason != self.reported:  # at the end what was said after the first steps is not said again
            self.reported = reason
            for line in reason.splitlines():
                self.log(f"devmap: {line}")


def _place() -> tuple[int, int]:
    """This process's rank, and how many there are; of a single process, 0 and 0."""
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return 0, 0


def _stats() -> list[tuple[int, dict[str, Any]]]:
    """The allocator's figures of each GPU that this process sees; none before it uses CUDA."""
    import torch

    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return []
    return [(cuda, torch.cuda.memory_stats(cuda)) for cuda in range(torch.cuda.device_count())]


class Watching:
    """What the callbacks share: a Watch, and what it found."""

    def __init__(
        self, plan: Plan | Path, steps: int = 3, strict: bool = False, log: Callable[[str], object] | None = None
    ) -> None:
        self.watch = Watch(plan, steps, strict, log)

    @property
    def report(self) -> list[Held]:
        return self.watch.report

    @property
    def verdict(self) -> str:
        return self.watch.verdict

    @property
    def reason(self) -> str:
        return self.watch.reason
