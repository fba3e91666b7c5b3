"""What goes wrong: the words, the exit status, and that the GPU has its memory back."""

import functools
import os
import re
import signal
import subprocess
import sys
import time

from engine import Job
from shared import MIB, gauge

MODEL = "llama-3.2-1b"
ERROR, INFEASIBLE = 1, 3
# Hides the driver's library from one process: an empty file lies over it, in a mount namespace of its own.
HIDDEN = r"""for file in $(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*=> //p') $(ls /usr/local/nvidia/lib64/libcuda.so.1 2>/dev/null); do mount --bind /dev/null "$(readlink -f "$file")" || exit 99; done; exec "$@" """
HOLD = "import sys, torch; free, _ = torch.cuda.mem_get_info(); x = torch.empty(free - (2 << 30), dtype=torch.uint8, device='cuda'); print('held', flush=True); sys.stdin.read()"


def faults(shared, figures):
    engine = shared.engine("faults")
    one, two = (
        engine.plan(shared.config(MODEL), Job(mode="train", batch=2, seq=256, micro_batches=micro, gpus=gpus, precision="bf16-true", **over), *shared.topology(gpus))
        for gpus, micro, over in ((1, 1, {}), (2, 2, {"strategy": "pipeline"}))
    )
    check = functools.partial(held, shared, figures, engine)
    check("no driver", one, [], ERROR, r"libcuda", before=["unshare", "-m", "sh", "-c", HIDDEN, "sh"])
    check("no GPU", one, [], ERROR, r"NO_DEVICE.*no CUDA-capable device", env={"CUDA_VISIBLE_DEVICES": ""})
    check("the second arena finds no memory", two, ["--fault", "oom@map:2"], INFEASIBLE, r"OUT_OF_MEMORY")
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
        check("too little is free", plan, [], INFEASIBLE, rf"(?s)free.*\b{holder.pid}\b")
    finally:
        holder.communicate()


def held(shared, figures, engine, case, plan, flags, status, words, before=(), env=()):
    """Runs a plan, and judges its end."""
    with figures.attempt("faults", case):
        reading = gauge()
        used = reading.used()
        done = subprocess.run([*before, shared.binary, "run", plan, "--json", "--weights", "random", *engine.backend(plan), *flags], capture_output=True, text=True, check=False, timeout=30, env=os.environ | dict(env))
        judged(figures, case, reading, used, done.returncode, done.stderr, status, words)


def judged(figures, case, reading, used, returned, said, status, words):
    """Of three: the exit status, the words on stderr, and NVML as before."""
    after = reading.settled(used)
    kept = [returned == status, bool(re.search(words, said)), after <= used]
    line = next((line.strip() for line in reversed(said.splitlines()) if words and re.search(words, line)), " ".join(said.split())[-160:])
    figures.same("faults", case, sum(kept), len(kept), f"exit status {returned} of {status}; {used / MIB:.0f} MiB held before, {after / MIB:.0f} after; {line[:220]}")


def interrupted(shared, figures, engine, plan):
    """SIGINT to the whole group, as a terminal sends it, once NVML shows that the arenas are there and steps run."""
    reading = gauge()
    used = reading.used()
    words = [shared.binary, "run", plan, "--json", "--weights", "random", *engine.backend(plan), "--steps", "100000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    begun = time.monotonic()
    while reading.used() < used + (2 << 30) and process.poll() is None and time.monotonic() - begun < 30:
        time.sleep(0.05)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    sent = time.monotonic()
    try:
        _, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    judged(figures, f"Ctrl-C in a step: {time.monotonic() - sent:.1f} s to the end", reading, used, process.returncode, err, 130, "interrupted")

