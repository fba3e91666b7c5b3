"""What finds no room, and when that is said: before anything is loaded, or with all of it rolled back."""

import functools
import math
import os
import re
import resource
import time

from lines import documents
from shared import MIB, children, gauge, warm
from turns import available, heard

NAME = "swap"
SMALL, LARGE, LARGEST = "qwen2.5-0.5b", "llama-3.2-1b", "llama-3.1-8b"
INFEASIBLE, WAY_OUT = 3, "without --keep host every turn loads again"
LONG = 4.0  # seconds of the small model's turn in whose midst something is done
LEFT = 5 << 29  # of the GPU: enough for a context and the small model


def refusals(held, figures):
    cases = {
        "copies that the host has no room for": host,
        "a model that the GPU has no room for": gpu,
        "a wake that finds no room": woken,
        "pinned memory that the system refuses": pinned,
    }
    for case, what in cases.items():
        if held.tiny and what in (woken, pinned):
            figures.told(NAME, case, "left out", "no step runs, in whose time it could be done")
            continue
        with figures.attempt(NAME, case):
            what(held, functools.partial(judged, figures, case))


def judged(figures, case, run, before, words, turns=0):
    """Of four: the exit status, the words, how many turns there were before, and NVML as it was."""
    status = run.end()
    after = gauge().settled(before, 5)
    last = run.last("^devmap: ")
    kept = [status == INFEASIBLE, bool(re.search(words, run.said)), run.turns == turns, after <= before]
    note = f"exit status {status}, {run.turns} turns, {before / MIB:.1f} MiB before, {after / MIB:.1f} after; {last}"
    figures.same(NAME, f"{case}: exit status 3, words, {turns} turns, nothing left", sum(kept), len(kept), note)


def host(held, judge):
    """As many copies as the host has no memory for, each of which the GPU has room for. Where scripts are tried the host says that it has room for one."""
    before, count, hidden = gauge().used(), 2, []
    if held.tiny:
        path = held.engine.place("meminfo")
        with open(path, "w") as file:
            file.write("MemTotal: 300000 kB\nMemAvailable: 276000 kB\n")
        hidden = ["unshare", "-m", "sh", "-c", f"mount --bind {path} /proc/meminfo; exec \"$@\"", "sh"]
    else:
        count = math.ceil(available() / os.path.getsize(os.path.join(held.folder, LARGEST, "model.safetensors"))) + 1
    plans = [held.plan(LARGEST, copy=copy) for copy in range(count)]
    run = held.run(plans, "--keep", "host", "--cycles", 2, before=hidden)
    judge(run, before, r"kept copy takes .* and other copies .*, .* free.*" + WAY_OUT)


def gpu(held, judge):
    """The second of two, beside a process that has most of it; the first would find room."""
    with held.holder(-(LEFT if not held.tiny else 8 * MIB)) as process:
        heard(process, "held")
        before = gauge().used()
        run = held.run([held.plan(SMALL), held.plan(LARGE)], "--cycles", 2)
        judge(run, before, rf"(?s)running \S*{os.path.basename(held.plan(LARGE))}: .*free.*\b{process.pid}\b")


def steps(held):
    """How many of the small model take a while."""
    return held.shared.once("steps of a long turn", lambda: long_turn(held))


def long_turn(held):
    run = held.run([held.plan(SMALL)], "--steps", 60)
    if run.end():
        raise RuntimeError(f"exit status {run.process.returncode}: {run.said[-600:]}")
    return math.ceil(LONG / warm(documents(run.out)[0]))


def woken(held, judge):
    """The first sleeps and the second has its turn when another process takes all that is free."""
    count, before = steps(held), gauge().used()
    with held.holder(-64 * MIB, "--on-line") as process:
        run = held.run([held.plan(LARGE), held.plan(SMALL)], "--keep", "host", "--cycles", 2, "--steps", count)
        if not run.until("^turn 1 of 2"):
            raise RuntimeError(f"no turn came: {run.said[-600:]}")
        time.sleep(LONG / 4)
        process.stdin.write("\n")
        process.stdin.flush()
        heard(process, "held")
        status = run.end()
        run.end = lambda: status
    judge(run, before, r"(?s)the wake was rolled back: .*free", turns=2)


def pinned(held, judge):
    """The process on the GPU gets no more addresses once its first turn is under way: neither the system nor the driver
    gives it pages."""
    reading, count = gauge(), steps(held) // 2
    before = reading.used()
    run = held.run([held.plan(LARGE)], "--keep", "host", "--cycles", 2, "--steps", count)
    ends = time.monotonic() + 30
    while reading.used() < before + (2 << 30) and run.process.poll() is None and time.monotonic() < ends:
        time.sleep(0.02)
    time.sleep(LONG / 4)
    worker = max(children(run.process.pid))
    with open(f"/proc/{worker}/statm") as file:
        addresses = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.prlimit(worker, resource.RLIMIT_AS, (addresses + (1 << 30), resource.RLIM_INFINITY))
    judge(run, before, r"pinned host memory for the kept copy .*" + WAY_OUT)

