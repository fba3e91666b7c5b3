"""Runs of plans by turns on the first GPU, and processes that take memory beside them."""

import contextlib
import os
import subprocess
import sys

from engine import Job
from lines import Lines
from shared import HERE, devices


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

    def run(self, plans, *flags, gpus=1, before=()):
        """Begins a run, whose documents will lie in out."""
        out = self.engine.place("reports.json")
        words = [*before, self.shared.binary, "run", *plans, *self.weights, "--backend", "cuda", "--devices", devices(gpus, False), "-o", out]
        run = Lines([*words, *map(str, flags)], self.environment)
        run.out = out
        return run

    @contextlib.contextmanager
    def holder(self, size, *flags):
        """Another process, with a context; what it holds is gone at the end. A refill has all that is free for a moment, in
        which there is no room for a context: it is begun anew then."""
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
