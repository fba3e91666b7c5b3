"""What commands of other engines leave, by `devmap watch --baseline`: verdicts, and what they name."""

import os
import signal
import sys
import time

from lines import Lines, documents
from shared import HERE, MIB, gauge
from turns import heard

NAME = "swap"
CHECK = 4
TAKES = "import torch; held = torch.ones(1 << 28, device='cuda'); torch.cuda.synchronize(); "
# A process of a session of its own, which holds memory and outlives the script.
LEAVES = """import os, subprocess, sys, time
quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
subprocess.Popen([sys.executable, *sys.argv[1:3], "--seconds", "60", "--told", sys.argv[3]], start_new_session=True, **quiet)
while not os.path.exists(sys.argv[3]): time.sleep(0.02)
"""
WAITS = """import os, sys, time
open(sys.argv[1], "w").close()
while not os.path.exists(sys.argv[2]): time.sleep(0.02)
"""


def commands(held, figures):
    for case, what in (("a script that leaves nothing", clean), ("one that leaves a process", leaving), ("one beside which another comes", beside)):
        with figures.attempt(NAME, "watch --baseline, " + case):
            what(held, figures, "watch --baseline, " + case)


def watched(held, *command):
    out = held.engine.place("left.json")
    run = Lines([held.shared.binary, "watch", "--baseline", "--strict", "-o", out, "--", sys.executable, *command], held.environment)
    run.out = out
    return run


def judged(figures, case, run, verdict, status, words=""):
    """Of three: the verdict, the exit status, and what is named."""
    ended = run.end()
    if not os.path.exists(run.out):
        raise RuntimeError(f"exit status {ended}: {run.said[-600:]}")
    certificate = documents(run.out)[-1]
    said = "; ".join(certificate["reasons"])
    kept = [certificate["verdict"] == verdict, ended == status, words in said]
    figures.same(NAME, f"{case}: {verdict}, exit status {status}, words", sum(kept), len(kept), f"exit status {ended}: {said}")


def clean(held, figures, case):
    holds = [os.path.join(HERE, "holder.py"), str(4 * MIB), "--seconds", "0.5"] if held.tiny else ["-c", TAKES]
    judged(figures, case, watched(held, *holds), "pass", 0)


def leaving(held, figures, case):
    reading, told = gauge(), held.engine.place("left.pid")
    before = reading.used()
    run = watched(held, "-c", ("" if held.tiny else TAKES) + LEAVES, os.path.join(HERE, "holder.py"), str(4 * MIB if held.tiny else 1 << 30), told)
    run.end()
    with open(told) as file:
        process = int(file.read())
    os.kill(process, signal.SIGKILL)
    judged(figures, case, run, "fail", CHECK, f"process {process} is on GPU 0 still")
    figures.within(NAME, f"{case}: NVML, from here, once that is killed, MiB", max(0, reading.settled(before, 5) - before) / MIB, 0)


def beside(held, figures, case):
    begun, done = held.engine.place("begun"), held.engine.place("done")
    run = watched(held, "-c", ("" if held.tiny else TAKES) + WAITS, begun, done)
    while not os.path.exists(begun) and run.process.poll() is None:
        time.sleep(0.02)
    with held.holder(2 << 30 if not held.tiny else 8 * MIB) as process:
        heard(process, "held")
        time.sleep(0.3)
        with open(done, "w"):
            pass
        run.end()
        judged(figures, case, run, "inconclusive", CHECK, f"process {process.pid} came")

