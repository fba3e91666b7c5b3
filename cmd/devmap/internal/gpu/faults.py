"""What goes wrong: the words, the exit status, and that the GPU has its memory back."""

import functools
import os
import re
import signal
import subprocess
import sys
import time

from engine import Job
from nvml import Gauge
from shared import MIB

MODEL = "llama-3.2-1b"
DONE, ERROR, INFEASIBLE = 0, 1, 3
# Hides the driver's library from one process: an empty file lies over it, in a mount namespace of its own.
HIDDEN = r"""for file in $(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*=> //p'); do mount --bind /dev/null "$(readlink -f "$file")" || exit 99; done; exec "$@" """
HOLD = "import sys, torch; free, _ = torch.cuda.mem_get_info(); x = torch.empty(free - (2 << 30), dtype=torch.uint8, device='cuda'); print('held', flush=True); sys.stdin.read()"


def faults(shared, figures):
    engine = shared.engine("faults")
    one, two = (
        engine.plan(shared.checkpoint(MODEL), Job(mode="train", batch=2, seq=256, micro_batches=micro, gpus=gpus, precision="bf16-true", **over), *shared.topology(gpus))
        for gpus, micro, over in ((1, 1, {}), (2, 2, {"strategy": "pipeline"}))
    )
    check = functools.partial(held, shared, figures, engine)
    check("nothing wrong", one, [], DONE, "")
    check("no driver", one, [], ERROR, r"libcuda", before=["unshare", "-m", "sh", "-c", HIDDEN, "sh"])
    check("no GPU", one, [], ERROR, r"GPU|device", env={"CUDA_VISIBLE_DEVICES": ""})
    for number in (1, 2):
        check(f"arena {number} finds no memory", two, ["--fault", f"oom@map:{number}"], INFEASIBLE, r"OUT_OF_MEMORY")
    check("a path corrupts", two, ["--fault", "corrupt@path:1"], ERROR, r"path|corrupt")
    check("the worker is killed", two, ["--fault", "kill@step:2", "--steps", "4"], ERROR, r"killed")
    with figures.attempt("faults", "too little is free"):
        crowded(check, one)
    with figures.attempt("faults", "Ctrl-C in a step"):
        interrupted(shared, figures, engine, one)


def crowded(check, plan):
    """Another process holds all but 2 GiB."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if holder.stdout.readline().strip() != "held":
            raise RuntimeError("the other process took nothing")
        check("too little is free", plan, [], INFEASIBLE, rf"free.*\b{holder.pid}\b|\b{holder.pid}\b.*free")
    finally:
        holder.communicate()


def held(shared, figures, engine, case, plan, flags, status, words, before=(), env=()):
    """Runs a plan, and judges its end."""
    with figures.attempt("faults", case):
        gauge = Gauge()
        used = gauge.used()
        done = subprocess.run([*before, shared.binary, "run", plan, "--json", *engine.backend(plan), *flags], capture_output=True, text=True, check=False, timeout=90, env=os.environ | dict(env))
        judged(figures, case, gauge, used, done.returncode, done.stdout + done.stderr, status, words)


def judged(figures, case, gauge, used, returned, said, status, words):
    line = next((line.strip() for line in reversed(said.splitlines()) if words and re.search(words, line)), " ".join(said.split())[-160:])
    figures.same("faults", case + f": exit status {status}", int(returned == status), 1, f"{returned}" if returned != status else "")
    if words:
        figures.same("faults", case + ": words", int(bool(re.search(words, said, re.DOTALL))), 1, line[:200])
    after = gauge.settled(used)
    figures.same("faults", case + ": memory given back", int(after <= used), 1, f"{used / MIB:.0f} MiB before, {after / MIB:.0f} after")


def interrupted(shared, figures, engine, plan):
    """SIGINT to the whole group, as a terminal sends it, once NVML shows that the arenas are there and steps run."""
    gauge = Gauge()
    used = gauge.used()
    words = [shared.binary, "run", plan, "--json", *engine.backend(plan), "--steps", "100000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    begun = time.monotonic()
    while gauge.used() < used + (2 << 30) and process.poll() is None and time.monotonic() - begun < 30:
        time.sleep(0.05)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    sent = time.monotonic()
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    figures.within("faults", "Ctrl-C in a step: seconds to the end", time.monotonic() - sent, 12)
    judged(figures, "Ctrl-C in a step", gauge, used, process.returncode, out + err, ERROR, "interrupt")

