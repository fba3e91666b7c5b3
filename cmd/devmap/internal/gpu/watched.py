"""Commands under `devmap watch`: peaks beside those that their own torch tells, and what watching them costs."""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

import maps
from shared import HERE, spending

MODEL, BATCH, SEQ = "qwen2.5-0.5b", 2, 1024
TIMED = "llama-3.2-1b", 2, 2048  # which the GPU takes longer for than Python
SPIKE = 8  # GiB, for 300 ms
# What a script does, the flags that plan it, the script's own.
TRAIN = ["--mode", "train", "--loss-only"]
KINDS = {
    "plain": (TRAIN, []),
    "generate": (["--mode", "infer", "--new-tokens", "32"], []),
    "recompute": ([*TRAIN, "--recompute", "full"], []),
    "lora": ([*TRAIN, "--lora-rank", "16", "--lora-targets", "all-linear"], []),
    "two": (TRAIN, []),
    "plain, a spike, peaks reset": (TRAIN, ["--spike", str(SPIKE), "--reset"]),
    "plain, planned for logits that are kept": (["--mode", "train", "--preset", "accelerate-loop"], []),
}
# How a script ends, the exit status that a shell gives it, what its hook says of that.
ENDS = {"oom": (1, "out of memory"), "killed": (128 + signal.SIGKILL, "running"), "left": (0, "exit")}
SLOWER, CORE = 1, 1  # percent: of a step, of a core
SIDE_BY_SIDE = 6  # scripts, of which the largest hold 20 GiB


def watch(shared, figures):
    tasks = [lambda kind=kind: peaks(shared, figures, kind) for kind in KINDS]
    tasks += [lambda kind=kind: ended(shared, figures, kind) for kind in ENDS]
    shared.beside([*tasks, lambda: untouched(shared, figures)], SIDE_BY_SIDE)
    with figures.attempt("watch", "step time"):
        step_time(shared, figures)
    maps.families(shared, figures)


class Watched:
    """A script that ran under `devmap watch`: its end, what it said of itself, the report."""

    def __init__(self, shared, name, plan_flags, script):
        folder = os.path.join(shared.folder, "watch-" + name.replace(" ", "").replace(",", "-"))
        os.makedirs(folder)
        self.plan, report = os.path.join(folder, "plan.json"), os.path.join(folder, "report.json")
        flags = ["--gpus", "1", *(["--gpu", shared.gpu] if shared.gpu else []), "--batch", str(BATCH), "--seq", str(SEQ), *plan_flags]
        planned = subprocess.run([shared.binary, "plan", shared.config(MODEL), *flags, "-o", self.plan], capture_output=True, text=True, check=False)
        if planned.returncode:
            raise RuntimeError(f"devmap plan: exit status {planned.returncode}: {planned.stderr[-800:]}")
        with spending(shared.spent, "devmap watch"):
            done = subprocess.run([shared.binary, "watch", self.plan, "-o", report, "--", *script], capture_output=True, text=True, check=False, timeout=120)
        self.status, self.said = done.returncode, done.stderr
        self.own = told(done.stdout)
        if not os.path.exists(report):
            raise RuntimeError(f"devmap watch: exit status {done.returncode}, and no report: {done.stderr[-800:]}")
        with open(report) as file:
            self.report = json.load(file)

    def of(self, own):
        """What the hook says of the process that said this of itself."""
        found = [process for process in self.report["processes"] or [] if process["pid"] == own["pid"]]
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} of the report's processes are {own['pid']}: {self.said[-800:]}")
        return found[0]


def told(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def script(shared, kind, *flags, case=(MODEL, BATCH, SEQ)):
    model, batch, seq = case
    return [sys.executable, os.path.join(HERE, "observed.py"), kind.split(",")[0], shared.config(model), "--batch", str(batch), "--seq", str(seq), *flags]


def same(figures, kind, ran, own):
    """The hook's peaks, and those of torch.cuda.max_memory_allocated and max_memory_reserved."""
    gpus = ran.of(own)["gpus"]
    for name in ("allocated", "reserved"):
        peak = gpus[0][name + "_peak_bytes"]
        figures.within("watch", f"{kind}: {name} peak, bytes beside the script's own", abs(peak - own[name]), 0, f"{own['kind']}: {own[name]}")


def peaks(shared, figures, kind):
    with figures.attempt("watch", kind):
        plan_flags, flags = KINDS[kind]
        ran = Watched(shared, kind, plan_flags, script(shared, kind, *flags))
        figures.same("watch", f"{kind}: processes, and the exit status", len(ran.own) + (ran.status == 0), (2 if kind == "two" else 1) + 1, "" if ran.status == 0 else ran.said[-400:].replace("\n", " | "))
        for own in ran.own:
            same(figures, kind, ran, own)
        device = ran.report["devices"][0]
        predicted, used = device["predicted"]["peak_allocated_bytes"], device["measured"]["device_used_bytes"]
        if "--spike" in flags:
            figures.reaching("watch", f"{kind}: GiB in the peak beyond the plan", (ran.own[0]["allocated"] - predicted) / 2**30, SPIKE / 4, "it was there for 300 ms")
        elif len(ran.own) == 1:
            off = 100 * abs(ran.own[0]["allocated"] / predicted - 1)
            if "--loss-only" not in plan_flags and "train" in plan_flags:
                figures.same("watch", f"{kind}: the setting that differs is named", sum("--loss-only" in reason for reason in reasons(ran.report)), 1)
            figures.told("watch", f"{kind}: % off the plan", f"{off:.3f}", f"verdict {ran.report['verdict']}; {used} bytes by NVML; " + " | ".join(reasons(ran.report)))


def reasons(report):
    return [reason for row in report.get("explained") or [] for reason in row["reasons"]]


def ended(shared, figures, kind):
    status, at = ENDS[kind]
    with figures.attempt("watch", kind):
        ran = Watched(shared, kind, TRAIN, script(shared, kind))
        figures.same("watch", f"{kind}: exit status {status}, and the hook's last word", (ran.status == status) + (ran.of(ran.own[0])["at"] == at), 2, f"{ran.status}, {ran.of(ran.own[0])['at']}")
        same(figures, kind, ran, ran.own[0])


def untouched(shared, figures):
    """A process that initialises CUDA and uses no GPU has no context under the hook either."""
    with figures.attempt("watch", "init"):
        ran = Watched(shared, "init", TRAIN, script(shared, "init"))
        figures.within("watch", "init: contexts of a process that only initialised CUDA", ran.own[0]["contexts"], 0, f"{len(ran.of(ran.own[0])['gpus'])} GPUs told")


def step_time(shared, figures, patience=100):
    """Two watched scripts and two alone, a few steps each by turns: what warms up or slows down does so for all."""
    turns = os.path.join(shared.folder, "turn")
    with open(turns, "w"):
        pass
    owns = {}

    def begin(place):
        command = script(shared, "plain", "--steps", "6", "--turns", turns, "--place", str(place), case=TIMED)
        if place % 2:
            owns[place] = Watched(shared, f"timed {place}", TRAIN, command).own[0]
        else:
            with spending(shared.spent, "the same alone"):
                owns[place] = told(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)[0]

    def first_turn():
        begun = time.monotonic()
        while not all(os.path.exists(f"{turns}.{place}") for place in range(4)) and time.monotonic() - begun < patience:
            time.sleep(0.05)
        with open(turns, "w") as file:
            file.write("0")
        with figures.attempt("watch", "what sampling takes"):
            sampling(shared, figures)

    shared.beside([first_turn, *(lambda place=place: begin(place) for place in range(4))])
    watched, alone = (statistics.median(second for place in places for second in owns[place]["seconds"]) for places in ((1, 3), (0, 2)))
    count = sum(len(owns[place]["seconds"]) for place in (1, 3))
    figures.within("watch", "step time, % longer than alone", 100 * (watched / alone - 1), SLOWER, f"medians of {count} steps: {1e3 * watched:.3f} and {1e3 * alone:.3f} ms")


def cpu_seconds(pid):
    """Of a process by itself, user and system (proc(5), stat)."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sampling(shared, figures, seconds=8):
    """What devmap itself takes of a core, once it watches, while the GPU trains."""
    plan = os.path.join(shared.folder, "sampling.json")
    subprocess.run([shared.binary, "plan", shared.config(MODEL), "--gpus", "1", *(["--gpu", shared.gpu] if shared.gpu else []), "-o", plan], capture_output=True, check=True)
    process = subprocess.Popen([shared.binary, "watch", plan, "--", "sleep", str(seconds + 4)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
    reader.start()
    time.sleep(1.5)
    before, begun = cpu_seconds(process.pid), time.monotonic()
    time.sleep(seconds)
    spent, passed = cpu_seconds(process.pid) - before, time.monotonic() - begun
    process.wait()
    reader.join()
    figures.within("watch", "what devmap takes of a core, %", 100 * spent / passed, CORE, f"{spent:.2f} s of {passed:.1f}; " + " ".join(line.strip() for line in said[0].splitlines() if "every" in line)[:160])
