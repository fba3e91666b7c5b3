"""Runs of several plans by turns: lines as they come, documents, and what stands in their certificates."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

from engine import Job
from shared import HERE, devices

PATIENCE = 120  # seconds that a run may take


def documents(path):
    """JSON values of a file, one behind another."""
    with open(path) as file:
        text = file.read()
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        one, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found.append(one)
    return found


RUNNING = []  # what was begun and is not known to have ended


def finish():
    """Kills what a part has left that broke off; workers end by themselves."""
    for lines in list(RUNNING):
        lines.process.kill()
        lines.end()


class Lines:
    """A command whose lines, of both kinds, are read as they come."""

    def __init__(self, words, environment=(), **over):
        self.begun, self.lines, self._came = time.monotonic(), [], threading.Condition()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", env=os.environ | dict(environment), **over)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        RUNNING.append(self)

    def _read(self):
        for line in self.process.stdout:
            with self._came:
                self.lines.append(line.rstrip("\n"))
                self._came.notify_all()

    def until(self, pattern, seconds=PATIENCE):
        """Waits for a line that matches, and reports whether it came."""
        ends = time.monotonic() + seconds
        with self._came:
            while not any(re.search(pattern, line) for line in self.lines):
                if self.process.poll() is not None and not self._reader.is_alive() or time.monotonic() > ends:
                    return any(re.search(pattern, line) for line in self.lines)
                self._came.wait(0.05)
        return True

    def more(self, count, seconds=PATIENCE):
        """Waits for some lines more, or the end."""
        ends, want = time.monotonic() + seconds, len(self.lines) + count
        while len(self.lines) < want and self.process.poll() is None and time.monotonic() < ends:
            time.sleep(0.01)

    def end(self, seconds=PATIENCE):
        """The exit status. What does not end is killed, and says so."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.lines.append(f"it did not end in {seconds} s")
        self._reader.join(10)
        if self in RUNNING:
            RUNNING.remove(self)
        self.seconds = time.monotonic() - self.begun
        return self.process.returncode

    @property
    def turns(self):
        """How many it has told of."""
        return sum(line.startswith("turn ") for line in self.lines)

    @property
    def said(self):
        return "\n".join(self.lines)

    def last(self, pattern="."):
        """The last line that matches, else the last."""
        found = [line.strip() for line in self.lines if re.search(pattern, line)] or [line.strip() for line in self.lines[-1:]]
        return found[-1][:240] if found else "it said nothing"


def available():
    """Bytes of the host's memory that can be had without swapping (proc_meminfo(5))."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


class Swap:
    """The binary, plans of small models and how they are run: on one GPU, the first."""

    def __init__(self, shared):
        self.shared, self.engine, self.tiny, self._plans, self.folder = shared, shared.engine("swap"), shared.small, {}, ""
        self.environment = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]}
        self.weights = ["--weights", "random"] if self.tiny else []
        self.turn_seconds = 1.0  # until it was measured

    def wide(self, model):
        """A plan's model: a folder with its weights; where scripts are tried a small one, of which others are larger."""
        widths = {"llama-3.2-1b": 3072, "llama-3.1-8b": 6144}
        return self.shared.tiny(model, intermediate_size=widths.get(model, 96)) if self.tiny else os.path.join(self.folder, model)

    def plan(self, model, gpus=1, copy=0):
        """A plan of its own for each copy."""
        key = (model, gpus, copy)
        if key not in self._plans:
            spread = {"gpus": gpus, "strategy": "pipeline"} if gpus > 1 else {}
            job = Job(mode="load" if self.tiny else "infer", seq=512, precision="bf16-true", **spread)
            self._plans[key] = self.engine.plan(self.wide(model), job, *(["--gpu", self.shared.gpu] if self.shared.gpu else []))
        return self._plans[key]

    def run(self, plans, *flags, gpus=1, before=(), environment=(), weights=None):
        """Begins a run, whose documents will lie in out."""
        out = self.engine.place("reports.json")
        words = [*before, self.shared.binary, "run", *plans, *(self.weights if weights is None else weights), "--backend", "cuda", "--devices", devices(gpus, False), "-o", out]
        run = Lines([*words, *map(str, flags)], self.environment | dict(environment))
        run.out = out
        return run

    @contextlib.contextmanager
    def holder(self, size, *flags):
        """Another process, with a context; what it holds is gone at the end."""
        words = [sys.executable, os.path.join(HERE, "holder.py"), str(size), *map(str, flags)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | self.environment)
        try:
            heard(process, "ready")
            yield process
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(30)
            process.stdout.close()


def heard(process, word):
    """Waits for a holder's word."""
    if (line := process.stdout.readline().strip()) != word:
        raise RuntimeError(f"the other process said {line!r} in place of {word!r}")


class Certificate:
    """What a certificate has seen, beside what it says of that."""

    def __init__(self, run, certificate):
        self.run, self.document = run, certificate
        self.cycles = [unload for unload in certificate["cycles"] if unload["plan"]]
        self.ends = [[unload for unload in self.cycles if unload["cycle"] == cycle][-1] for cycle in sorted({unload["cycle"] for unload in self.cycles}) if cycle > 1]

    def lost(self, figure, granule=2 << 20):
        """Granules that all cycles behind the first lose together by a figure, each judged by itself."""
        values = [unload["gpus"][0][figure] for unload in self.ends]
        sign = -1 if figure.endswith("free_bytes") else 1
        steps = [max(0, sign * (after - before)) // granule for before, after in zip(values, values[1:])]
        return sum(steps) + max(0, sign * (values[-1] - values[0])) // granule

    def held(self):
        """Unloads behind which the ledger has what it should not: behind one that closed anything, where plans sleep anything else than behind the first cycle."""
        first = [unload for unload in self.cycles if unload["cycle"] == 1][-1]
        asleep = [unload for unload in self.cycles if unload["end"] == "asleep" and unload["cycle"] > 1]
        closed = [unload for unload in self.document["cycles"] if unload["end"] == "closed"]
        return sum(bool(unload["ledger"]) for unload in closed) + sum(unload["ledger"] != first["ledger"] for unload in asleep)

    def slowest(self):
        """Seconds until a GPU had what it had at the reference: the most of all; never is infinite."""
        seconds = [left["seconds"] for unload in self.cycles if unload["cycle"] > 1 for left in unload["gpus"]]
        return max(float("inf") if one is None else one for one in seconds)

    def check(self, name):
        return next((f"{check['name']} {check['verdict']}: {check['detail']}" for check in self.document["checks"] if check["name"] == name), "")


def certified(run):
    """The certificate that a run has left, and the reports before it."""
    found = documents(run.out) if os.path.exists(run.out) else []
    if not found or found[-1]["format_version"] != "devmap.certificate/v1":
        raise RuntimeError(f"exit status {run.process.returncode}, and no certificate: {run.said[-600:]}")
    return Certificate(run, found[-1]), found[:-1]
