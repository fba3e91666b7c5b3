"""devmap as its users run it: the command, and the files that it writes."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass
class Job:
    """What is planned: flags of `devmap plan`."""

    mode: str = "infer"
    gpus: int = 1
    strategy: str = "device-map"
    batch: int = 1
    seq: int = 16
    precision: str = "32-true"
    micro_batches: int = 1
    schedule: str = ""
    recompute: str = ""
    new_tokens: int = 0
    optimizer: str = ""

    def flags(self):
        out = ["--runtime", "devmap"]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value not in ("", 0):
                out += ["--" + field.name.replace("_", "-"), str(value)]
        return out

    def __str__(self):
        parts = [f"{self.gpus} {self.strategy}"]
        parts += [self.schedule] if self.schedule else []
        parts += [f"m={self.micro_batches}"] if self.micro_batches > 1 else []
        parts += ["recompute"] if self.recompute == "full" else []
        return " ".join(parts)


@dataclasses.dataclass
class Ran:
    """What a run left: its report, the files that it dumped, how large its process became."""

    report: dict
    files: dict
    peak_bytes: int

    @property
    def losses(self):
        return [step["loss"] for step in self.report["steps"]]


class Failed(RuntimeError):
    """devmap's own words, after its exit status."""

    def __init__(self, words, done):
        super().__init__(f"devmap {words[0]}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        self.status, self.words = done.returncode, words


class Engine:
    """Runs a devmap binary in a folder of its own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.count = os.path.abspath(binary), folder, 0
        self.verdicts = []  # of every run: passed, and why not
        self.accepted = ("pass",)  # verdicts that are no fault

    def place(self, name):
        """A path of this folder that no other call gets."""
        self.count += 1
        return os.path.join(self.folder, f"{self.count:05d}-{name}")

    def plan(self, model, job, *flags):
        out = self.place("plan.json")
        self._call(["plan", model, *job.flags(), *flags, "-o", out])
        return out

    def tokens(self, lines):
        """A file of token ids, an array a line."""
        out = self.place("tokens.jsonl")
        with open(out, "w") as file:
            file.writelines(json.dumps([int(token) for token in line]) + "\n" for line in lines)
        return out

    def run(self, plan, *flags, dumps=(), tokens=None):
        files = {kind: self.place(kind + ".safetensors") for kind in dumps}
        flags = [*flags, *(word for kind, path in files.items() for word in ("--dump", f"{kind}={path}"))]
        if tokens is not None:
            flags += ["--tokens", self.tokens(tokens)]
        text, peak = self._measured(["run", plan, "--json", *self.backend(plan), *flags], (0, 4))
        report = json.loads(text)
        self.verdicts.append("" if report["verdict"] in self.accepted else f"{report['verdict']}: {'; '.join(report['reasons'])}")
        return Ran(report, files, peak)

    def backend(self, plan):
        """Flags of run that say what carries a plan out."""
        return ["--backend", "cpu"]

    def planned(self, model, job, *flags, dumps=(), tokens=None):
        return self.run(self.plan(model, job), *flags, dumps=dumps, tokens=tokens)

    def baseline(self, plan):
        """How large the process becomes that compiles and plays the plan and runs nothing."""
        return self._measured(["simulate", plan, "--json"])[1]

    def _measured(self, words, statuses=(0,)):
        """stdout, and the largest resident size in bytes. A process of this size would be the child's first
        reading (the kernel counts what it was before exec), so a small one stands between."""
        peak = self.place("peak")
        script = os.path.join(HERE, "peak.py")
        text = self._call(words, [sys.executable, "-I", "-S", script, peak], statuses)
        with open(peak) as file:
            return text, int(file.read())

    def _call(self, words, before=(), statuses=(0,)):
        done = subprocess.run([*before, self.binary, *words], capture_output=True, text=True, check=False)
        if done.returncode not in statuses:
            raise Failed(words, done)
        return done.stdout

    def call(self, *words):
        """stdout of the command."""
        return self._call(list(words))

    def clear(self):
        """Lets go of everything that was written so far."""
        shutil.rmtree(self.folder)
        os.makedirs(self.folder)


def temporary():
    return tempfile.TemporaryDirectory(prefix="devmap-conformance-")
