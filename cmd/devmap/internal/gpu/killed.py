"""Runs that are killed at drawn moments, and runs that are refused memory: no process and no byte of them is left."""

import collections
import dataclasses
import os
import random
import re
import signal
import time

from shared import MIB, children, descendants, gauge
from turns import available

NAME = "swap"
MODEL, AT_ONCE = "qwen2.5-0.5b", 12
KILLS, MAPS, DEVICES = 16, 16, 2
GONE, HOST = 10.0, 512  # seconds; MiB of the host's memory, which the system has other uses for too
SLEEPS, WAKES = "goes to sleep", "wakes"
FAULTS = {"load:1": "load", "step:1": "step 1", "sleep:1": SLEEPS, "sleep:2": SLEEPS, "wake:1": WAKES, "wake:2": WAKES}
ERROR, INFEASIBLE = 1, 3
# What a run that is refused memory says, by what it needed it for.
NEEDS = {
    "load": (INFEASIBLE, "OUT_OF_MEMORY"),
    "copy": (INFEASIBLE, r"pinned host memory .*OUT_OF_MEMORY.*without --keep host"),
    "wake": (INFEASIBLE, r"the wake was rolled back: .*OUT_OF_MEMORY"),
    "beyond": (ERROR, "did not come to that"),
}


@dataclasses.dataclass
class Killed:
    """A run of which a process was killed, how many seconds behind its beginning."""

    whom: str
    after: float
    where: str = ""
    seconds: float = 0.0  # until none of its processes was left
    wrong: str = ""


def storm(held, figures):
    """All of them, some at once; how each ended, and what is left when the last has."""
    reading, draw, begun = gauge(), random.Random(held.shared.seed), time.monotonic()
    used, room = reading.used(), available()
    kills, ends, maps = [], [], []
    window = 4 + 6 * held.turn_seconds
    for copy in range(2):
        held.plan(MODEL, copy=copy)
    held.plan(MODEL, DEVICES)
    drawn = [(Killed(("supervisor", "worker")[i % 2], draw.uniform(0.1, window)), ("none", "host")[i // 2 % 2]) for i in range(KILLS)]
    tasks = [lambda one=one: kills.append(killed(held, *one)) for one in drawn]
    tasks += [lambda fault=fault: ends.append(faulted(held, fault)) for fault in FAULTS if not (held.tiny and "step" in fault)]
    tasks += [lambda number=number: maps.append(unmapped(held, number)) for number in range(1, MAPS + 1)]
    held.shared.beside(tasks, AT_ONCE)
    after = reading.settled(used, GONE)
    note = f"{len(tasks)} runs, {AT_ONCE} at once, in {time.monotonic() - begun:.0f} s; {used / MIB:.1f} MiB, then {after / MIB:.1f}"
    figures.within(NAME, "kills and refusals: NVML, from here, beyond the start, MiB", max(0, after - used) / MIB, 0, note)
    figures.within(NAME, "kills and refusals: host memory not given back, MiB", missing(room), HOST, f"of {room / MIB:.0f} MiB")
    told_kills(figures, kills, held.shared.seed)
    wrong = [why for why in ends if why]
    figures.same(NAME, "kills by --fault: exit status 1, where it was", len(ends) - len(wrong), len(ends), "; ".join(wrong)[:400])
    told_maps(figures, sorted(maps))


def missing(room, seconds=5):
    """MiB of the host's memory that can be had no more."""
    ends = time.monotonic() + seconds
    while (less := max(0, room - available()) / MIB) > HOST / 4 and time.monotonic() < ends:
        time.sleep(0.1)
    return less


def alive(pid):
    """A process that nobody has waited for has ended all the same."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def killed(held, one, keep):
    """SIGKILL to one of a run's processes, and how many seconds later all are gone, from the system and from the GPU."""
    reading = gauge()
    run = held.run([held.plan(MODEL, copy=copy) for copy in range(2)], "--cycles", 10000, "--keep", keep)
    time.sleep(one.after)
    processes = descendants(run.process.pid) | {run.process.pid}
    if run.process.poll() is not None:
        one.wrong = f"it had ended: {run.last()}"
        return one
    workers = children(run.process.pid)
    os.kill(max(workers) if one.whom == "worker" and workers else run.process.pid, signal.SIGKILL)
    sent = time.monotonic()
    while any(map(alive, processes)) or processes & reading.processes():
        run.process.poll()  # waits for the supervisor, which is this process's child
        if time.monotonic() - sent > 2 * GONE:
            break
        time.sleep(0.02)
    one.seconds = time.monotonic() - sent
    status = run.end(30)
    found = re.search(r"ended (\S.*?): signal: killed", run.said)
    one.where = found[1] if found else f"behind {run.turns} turns"
    ends = {-signal.SIGKILL} if one.whom == "supervisor" or not workers else {ERROR}
    if status not in ends or ERROR in ends and "killed" not in run.said:
        one.wrong = f"exit status {status}: {run.last()}"
    return one


def told_kills(figures, kills, seed):
    wrong = [f"{one.whom}: {one.wrong}" for one in kills if one.wrong]
    figures.same(NAME, "SIGKILL of supervisors and workers: end as foretold", len(kills) - len(wrong), len(kills), "; ".join(wrong)[:400])
    moments = [one.after for one in kills]
    most = {whom: max(one.seconds for one in kills if one.whom == whom) for whom in ("supervisor", "worker")}
    note = f"{len(kills)} moments from {min(moments):.1f} to {max(moments):.1f} s, seed {seed}; of a worker {most['worker']:.1f} s"
    figures.within(NAME, "SIGKILL: seconds until no process is left, on the system or on the GPU", max(most.values()), GONE, note)
    places = collections.Counter(re.sub(r"[\d.]+ \w?i?B|\d+", "…", one.where) for one in kills)
    figures.told(NAME, "SIGKILL: where they were", str(len(places)), "; ".join(f"{count} × {place}" for place, count in places.most_common()))


def faulted(held, fault):
    """Empty: it ended as it should."""
    run = held.run([held.plan(MODEL, copy=copy) for copy in range(2)], "--cycles", 3, "--keep", "host", "--fault", "kill@" + fault)
    status = run.end()
    found = re.search(r"ended (\S.*?): signal: killed", run.said)
    kept = status == ERROR and found and FAULTS[fault] in found[1]
    return "" if kept else f"{fault}: exit status {status}: {run.last('killed')}"


def unmapped(held, number):
    """What the Nth need of memory was for, that finds none."""
    fault = f"oom@map:{number}"
    run = held.run([held.plan(MODEL, DEVICES)], "--cycles", 2, "--keep", "host", "--fault", fault, gpus=DEVICES)
    status = run.end()
    fits = [kind for kind, (want, words) in NEEDS.items() if status == want and re.search(words, run.said)]
    return number, fits[-1] if fits else "wrong", f"exit status {status}: {run.last('MEMORY|come to that')}"


def told_maps(figures, maps):
    """What is asked for one after another, in loading, for copies and in the only wake, is refused, and nothing behind it."""
    order, said = [kind for _, kind, _ in maps], {kind: words for _, kind, words in reversed(maps)}
    counted = collections.Counter(order)
    right = order == sorted(order, key=[*NEEDS, "wrong"].index)
    wrong = "; ".join(f"{number}: {words}" for number, kind, words in maps if kind == "wrong")[:300]
    wakes, copies = counted["wake"] * right, counted["copy"] * right
    figures.same(NAME, "out of memory at each map of a wake: rolled back, exit status 3", wakes, DEVICES, wrong or said.get("wake", ""))
    figures.same(NAME, "pinned memory refused for each copy: exit status 3, the way out", copies, DEVICES, said.get("copy", ""))
    figures.told(NAME, "other needs of memory that were refused", str(counted["load"]), f"{counted['beyond']} behind the last of all")
