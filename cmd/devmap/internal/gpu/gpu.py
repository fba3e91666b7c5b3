"""Every figure that devmap is held to on a GPU, each beside its bar, on the machine that it runs on.

usage: gpu.py DEVMAP [--part PART,...] [--seed N] [--small] [--root REPOSITORY] [--models FOLDER] [--binaries FOLDER] [--table FILE]

Exit status 1 where a bar is missed. `--part help` lists the parts; without --part all run. DEVMAP is a binary with the
CUDA backend; test binaries of Go lie in the folder of --binaries. It needs torch, transformers and safetensors of the
Python that runs it, and no Go. `--backend cpu --small` tries the scripts where there is no
GPU: its figures of times and memory mean nothing.
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import time

import shared

# What reads times or memory, or takes a minute of the GPU, and is alone on it; in the order in which all run: module, what it holds.
ALONE = {
    "memory": ("memory", "high water of every region = planned; NVML = a plan made beforehand from probe's topology, at every fence"),
    "arena": ("steps", "the arena of a step beside the peak of PyTorch's allocator"),
    "step": ("steps", "a training step beside PyTorch's, where its time goes, the simulated step beside the measured"),
    "products": ("kernels", "every product of a step beside torch.matmul, descriptors and launch included"),
    "kernels": ("kernels", "every kernel beside float64; those that only move memory beside a copy"),
    "attention": ("kernels", "attention beside cuDNN's and flash's speed, forward and backward, grouped, causal and in windows"),
    "decode": ("decode", "generation beside Transformers' static cache with compile, and beside the limit of reading the weights"),
    "loading": ("loading", "loading beside safetensors.torch.load_file and beside a copy from pinned memory"),
    "copies": ("peers", "several GPUs: copies between them beside torch's"),
    "pipelines": ("pipelines", "several GPUs: memory of pipelines, their speed beside one GPU's and torch.distributed.pipelining's, the simulated step"),
    "schedules": ("schedules", "several GPUs: every schedule of an 8B model: predicted and measured steps, memory, losses, torch's classes on the same cuts"),
    "even": ("peers", "several GPUs: the largest arena of maps beside the mean, and beside the plan"),
    "onto": ("peers", "several GPUs: an 8B model's file onto all at once, beside copies from pinned memory"),
    "maps": ("maps", "several GPUs: devmap's own maps under Accelerate, each GPU beside the prediction"),
    "eight": ("eight", "rows of eight GPUs in the engines that they are for, each beside the committed prediction; on fewer GPUs smaller models"),
    "across": ("peers", "several GPUs: one device's bits, by both transports"),
    "watch": ("watched", "commands under devmap watch: peaks to the byte of their own, what watching takes; emit --for torch-check of three families"),
    "swap": ("swap", "two models by turns: nothing lost in 20 cycles, kept ones too; a wake of 16 GB beside the link; others, kills, refusals, what commands leave"),
    "faults": ("faults", "no driver, no GPU, no room, memory that is not found, a corrupted path, a killed worker, Ctrl-C: words, status, memory given back"),
    "trained": ("trained", "a model of bytes trained, saved, and loaded by Transformers"),
}
# What is right or wrong, however long it takes: some of these at once, a process each.
TOGETHER = 3
BESIDE = {
    "logits": ("accuracy", "logits and tokens of drawn models of every family: fp32, and bf16 beside PyTorch's own rounding"),
    "gradients": ("accuracy", "gradients and losses of drawn models of every family"),
    "widths": ("accuracy", "logits and gradients of real widths of every family"),
    "bits": ("bits", "1, 2, 4 program devices, both transports, repeated runs: bit for bit; the processor's fp32 beside it"),
    "float64": ("kernels", "products and attention as a step gives them, beside float64, twice the same bits"),
    "sanitizer": ("kernels", "compute-sanitizer over every kernel: memcheck, racecheck"),
}
PARTS = ALONE | BESIDE
WITH = {"peers": ("copies", "pipelines", "schedules", "even", "onto", "maps", "across")}  # names of several parts
GPU_ALONE = ("copies", "maps", "watch", "swap", "products", "kernels", "attention", "loading", "faults", "float64", "sanitizer")


def asked():
    parser = argparse.ArgumentParser()
    parser.add_argument("devmap")
    parser.add_argument("--part", default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--draws", type=int, default=2, help="configurations of each family")
    parser.add_argument("--small", action="store_true", help="fewer and smaller cases, to try the scripts")
    parser.add_argument("--root", default=os.path.join(shared.HERE, *[".."] * 4))
    parser.add_argument("--models", default="")
    parser.add_argument("--binaries", default="bin")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--gpu", default="", help="plan for a GPU of the catalogue, and probe nothing")
    parser.add_argument("--keep", default="", help="a folder for the rows of parts that ended; what it has of this binary and machine is not run again")
    parser.add_argument("--probed", default="", help="a folder for what probe writes; what it has is not probed again")
    parser.add_argument("--seconds", type=float, default=400, help="after these the parts memory and eight begin no other run, and say so")
    parser.add_argument("--table", default="", help="a file for the figures as a table of Markdown")
    parser.add_argument("--pieces", default="", help="of the parts swap and eight alone those whose names begin with one of these, with commas between; of eight and step also models")
    parser.add_argument("--rows", default="", help="a file for the figures of one part, for the process that began this one")
    args = parser.parse_args()
    args.devmap = os.path.abspath(args.devmap)
    args.parts = [part for name in args.part.split(",") if name for part in WITH.get(name, (name,))] or list(PARTS)
    if args.parts == ["help"]:
        for name, (_, what) in PARTS.items():
            print(f"  {name:10} {what}")
        sys.exit(0)
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: there are {', '.join(PARTS)}")
    return args


def carried_out(name, held, figures):
    """A part. On a processor those that hold nothing but a GPU to something are left out."""
    begun = time.monotonic()
    held.spent.clear()
    if name in ALONE:
        with shared.spending(held.spent, "until the GPU is quiet"):
            shared.quiet()
    if held.kind == "cpu" and name in GPU_ALONE:
        figures.told(name, "left out", "-", "it says nothing where there is no GPU")
        return
    with figures.attempt(name, "the part"):
        getattr(importlib.import_module(PARTS[name][0]), name)(held, figures)
    spent = ", ".join(f"{program} {seconds:.1f}" for program, seconds in held.spent.items())
    figures.told(name, "seconds of the part", f"{time.monotonic() - begun:.0f}", spent)


def side_by_side(names, seed, folder, kept, figures):
    """Each part by this script again; what one prints comes when it has ended, or when this is ended."""
    begun, waiting = {}, list(names)
    while waiting or begun:
        while waiting and len(begun) < TOGETHER:
            name = waiting.pop(0)
            begun[name] = started(name, seed, folder)
        time.sleep(0.1)
        for name in [name for name, process in begun.items() if process.poll() is not None]:
            del begun[name]
            shared.read_out(os.path.join(folder, name + ".log"))
            with figures.attempt(name, "the part"), open(os.path.join(folder, name + ".json")) as file:
                found = json.load(file)
                figures.take(found)
                kept.keep(name, found)


def started(name, seed, folder):
    """This script as the process of one part."""
    rows = os.path.join(folder, name + ".json")
    words = [sys.executable, __file__, *sys.argv[1:], "--part", name, "--seed", str(seed), "--rows", rows, "--table", "", "--keep", ""]
    with open(os.path.join(folder, name + ".log"), "w") as log:
        shared.UNREAD.append(log.name)
        return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)


class Kept:
    """Rows of parts that ended, in a folder: a run that was broken off goes on with the others."""

    def __init__(self, folder, heading, binary):
        self.folder, self.heading = folder, heading
        with open(binary, "rb") as file:
            self.digest = hashlib.sha256(file.read()).hexdigest()

    def _path(self, name):
        return os.path.join(self.folder, name + ".json")

    def rows(self, name):
        """Of a part that this very binary went through on a machine that says the same of itself; else None."""
        if not self.folder or not os.path.exists(self._path(name)):
            return None
        with open(self._path(name)) as file:
            kept = json.load(file)
        return kept["rows"] if (kept["digest"], kept["heading"]) == (self.digest, self.heading[1:]) else None

    def keep(self, name, rows):
        """Figures over their bars are kept too; a part of which some are not there at all is to run again."""
        if self.folder and all(row[2] != "none" for row in rows):
            os.makedirs(self.folder, exist_ok=True)
            with open(self._path(name), "w") as file:
                json.dump({"digest": self.digest, "heading": self.heading[1:], "seed": self.heading[0], "rows": rows}, file)


def all_parts(args, held, kept, figures):
    """The parts that are asked for; those that were kept are taken as they were, unless they are asked for by name."""
    def taken(name):
        rows = None if args.part else kept.rows(name)
        if rows is not None:
            figures.take(rows)
            print(f"{name}: as it was kept in {kept.folder}", flush=True)
        return rows is not None

    names = [name for name in args.parts if not taken(name)]
    beside = [name for name in names if name in BESIDE]
    for name in names:
        if name in ALONE or len(beside) == 1:
            before = len(figures.rows)
            carried_out(name, held, figures)
            kept.keep(name, figures.rows[before:])
    if len(beside) > 1:
        side_by_side(beside, args.seed, held.folder, kept, figures)


def markdown(figures, heading):
    """Rows of parts with few figures; of those with many, each kind of figure by its worst."""
    out = [*heading, "", "| part | case | figure | bar | |", "|---|---|---|---|---|"]
    for section in dict.fromkeys(row[0] for row in figures.rows):
        rows = [tuple(column.replace("|", "/") if isinstance(column, str) else column for column in row) for row in figures.rows if row[0] == section]
        if len(rows) > 70:
            judged, missed = [row for row in rows if row[4] is not None], [row for row in rows if "MISSED" in row[3]]
            out.append(f"| {section} | {len(rows)} figures, {len(missed)} missed; the nearest to their bars: | | | |")
            rows = missed + sorted(judged, key=lambda row: -row[4])[:8]
        out += [f"| {section} | {case} | {figure} | {bar} | {note} |" for _, case, figure, bar, _, note in rows]
    return "\n".join(out) + "\n"


def missing(args):
    """What this machine lacks; empty: nothing."""
    lacking = [name for name in ("torch", "transformers", "safetensors", "numpy") if importlib.util.find_spec(name) is None]
    if lacking:
        return f"{sys.executable} has no {', '.join(lacking)}: set PYTHON to one that has"
    if not os.access(args.devmap, os.X_OK):
        return f"{args.devmap} is no program: where there is no Go, build bin/devmap, bin/cuda.test and bin/kernel.test elsewhere with tag cuda, and bring them"
    if args.backend == "cuda" and not shared.machine(args.devmap)[0].startswith("GPU: NVIDIA"):
        return "no GPU here: nvidia-smi lists none"
    return ""


def main():
    args = asked()
    if why := missing(args):
        sys.exit("make gpu: " + why)
    from figures import Figures

    shared.heed()
    figures = Figures()
    with shared.scratch(os.path.dirname(args.rows)) as folder:
        held = shared.Shared(args, folder)
        heading = [f"seed {args.seed}", *shared.machine(args.devmap)]
        if not args.rows:
            print(*heading, sep="\n", flush=True)
            figures.head()
        all_parts(args, held, Kept(args.keep, heading, args.devmap), figures)
    for path, text in ((args.rows, json.dumps(figures.rows)), (args.table, markdown(figures, heading))):
        if path:
            with open(path, "w") as file:
                file.write(text)
    sys.exit(0 if args.rows else figures.tail(args.seed))


if __name__ == "__main__":
    main()
