"""Runs that are killed at drawn moments, and runs that are refused memory: no process and no byte of them is left."""

import collections
import os
import random
import re
import signal
import time

from shared import MIB, descendants, gauge
from turns import available

NAME = "swap"
MODEL, AT_ONCE = "qwen2.5-0.5b", 8
KILLS, MAPS, DEVICES = 16, 16, 2
GONE, HOST = 10.0, 512  # seconds; MiB of the host's memory, which the system has other uses for too
FAULTS = {"kill@load:1": "load", "kill@step:1": "step 1", "kill@sleep:1": "goes to sleep", "kill@sleep:2": "goes to sleep", "kill@wake:1": "wakes", "kill@wake:2": "wakes"}
ERROR, INFEASIBLE = 1, 3


def storm(held, figures):
    """All of them, some at once; what each was, and what is left when the last has ended."""
    reading, draw, begun = gauge(), random.Random(held.shared.seed), time.monotonic()
    used, room = reading.used(), available()
    kills, ends, maps = [], [], []
    window = 4 + 6 * held.turn_seconds
    drawn = [(("supervisor", "worker")[i % 2], ("none", "host")[i // 2 % 2], draw.uniform(0.1, window)) for i in range(KILLS)]
    for copy in range(2):
        held.plan(MODEL, copy=copy)
    held.plan(MODEL, DEVICES)
    tasks = [lambda one=one: kills.append(killed(held, *one)) for one in drawn]
    tasks += [lambda fault=fault: ends.append(faulted(held, fault)) for fault in FAULTS if not (held.tiny and "step" in fault)]
    tasks += [lambda number=number: maps.append(unmapped(held, number)) for number in range(1, MAPS + 1)]
    held.shared.beside(tasks, AT_ONCE)
    after = reading.settled(used, GONE)
    figures.within(NAME, "kills and refusals: NVML, from here, beyond the start, MiB", max(0, after - used) / MIB, 0, f"{len(tasks)} runs, {AT_ONCE} at once, in {time.monotonic() - begun:.0f} s; {used / MIB:.1f} MiB, then {after / MIB:.1f}")
    figures.within(NAME, "kills and refusals: host memory not given back, MiB", missing(room), HOST, f"{room / MIB:.0f} MiB could be had before")
    told_kills(figures, kills, held.shared.seed)
    figures.same(NAME, "kills by --fault: exit status 1, where it was", sum(not why for why in ends), len(ends), "; ".join(why for why in ends if why)[:400])
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


def killed(held, whom, keep, after):
    """SIGKILL to one of its processes: whom, where it was, and how many seconds later all were gone, from the system and from the GPU."""
    reading = gauge()
    run = held.run([held.plan(MODEL, copy=copy) for copy in range(2)], "--cycles", 10000, "--keep", keep)
    time.sleep(after)
    workers = descendants(run.process.pid)
    processes = workers | {run.process.pid}
    if run.process.poll() is not None:
        return whom, keep, after, f"it had ended: {run.last()}", 0.0, False
    os.kill(max(workers) if whom == "worker" and workers else run.process.pid, signal.SIGKILL)
    sent = time.monotonic()
    while (any(map(alive, processes - {run.process.pid})) or processes & reading.processes()) and time.monotonic() - sent < 2 * GONE:
        run.process.poll()  # waits for the supervisor, which is this process's child
        time.sleep(0.02)
    seconds = time.monotonic() - sent
    status = run.end(30)
    found = re.search(r"ended (\S.*?): signal: killed", run.said)
    right = status == -signal.SIGKILL if whom == "supervisor" else status in (ERROR, -signal.SIGKILL) and (not workers or "killed" in run.said)
    return whom, keep, after, (found[1] if found else f"behind {run.turns} turns") + ("" if right else f": exit status {status}: {run.last()}"), seconds, right


def told_kills(figures, kills, seed):
    right = [one for one in kills if one[5]]
    figures.same(NAME, "SIGKILL of supervisors and workers: ends as foretold", len(right), len(kills), "; ".join(f"{one[0]}: {one[3]}" for one in kills if not one[5])[:400])
    figures.within(NAME, "SIGKILL: seconds until no process is left, on the system or on the GPU, at most", max(one[4] for one in kills), GONE, f"seed {seed}; {len(kills)} moments from {min(one[2] for one in kills):.1f} to {max(one[2] for one in kills):.1f} s")
    places = collections.Counter(re.sub(r"[\d.]+ \w?i?B|\d+", "…", one[3]) for one in kills)
    figures.told(NAME, "SIGKILL: where they were", str(len(places)), "; ".join(f"{count} × {place}" for place, count in places.most_common()))


def faulted(held, fault):
    """Empty: it ended as it should."""
    run = held.run([held.plan(MODEL, copy=copy) for copy in range(2)], "--cycles", 3, "--keep", "host", "--fault", fault)
    status = run.end()
    found = re.search(r"ended (\S.*?): signal: killed", run.said)
    kept = status == ERROR and found and FAULTS[fault] in found[1]
    return "" if kept else f"{fault}: exit status {status}: {run.last('killed')}"


def unmapped(held, number):
    """What the Nth need of memory was that finds none: in a load, for the copy that is kept, in a wake; or it did not come to that."""
    run = held.run([held.plan(MODEL, DEVICES)], "--cycles", 2, "--keep", "host", "--fault", f"oom@map:{number}", gpus=DEVICES)
    status = run.end()
    kinds = (("wake", INFEASIBLE, r"the wake was rolled back: .*OUT_OF_MEMORY"), ("copy", INFEASIBLE, r"page-locked memory .*OUT_OF_MEMORY.*without --keep host"),
             ("load", INFEASIBLE, "OUT_OF_MEMORY"), ("beyond", ERROR, "did not come to that"))
    kind = next((kind for kind, want, words in kinds if status == want and re.search(words, run.said)), "wrong")
    return number, kind, f"exit status {status}: {run.last('MEMORY|come to that')}"


def told_maps(figures, maps):
    """A plan's maps of its only wake, one after another, are refused, and nothing behind them is asked for."""
    counted = collections.Counter(kind for _, kind, _ in maps)
    wrong = [f"{number}: {said}" for number, kind, said in maps if kind == "wrong"]
    order = [kind for _, kind, _ in maps]
    ordered = order == sorted(order, key=["load", "copy", "wake", "beyond", "wrong"].index)
    figures.same(NAME, "out of memory at each map of a wake: rolled back, exit status 3, words", counted["wake"] if ordered else 0, DEVICES, "; ".join(wrong)[:300] or next((said for _, kind, said in maps if kind == "wake"), ""))
    figures.same(NAME, "page-locked memory is refused for each copy that is kept: exit status 3, the way out", counted["copy"], DEVICES, next((said for _, kind, said in maps if kind == "copy"), ""))
    figures.told(NAME, "needs of memory that were refused", str(len(maps) - counted["beyond"]), f"{counted['load']} in loading; {counted['beyond']} behind the last")
