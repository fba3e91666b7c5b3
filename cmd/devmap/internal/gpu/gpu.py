"""Every figure that devmap is held to on a GPU, each beside its bar, on the machine that it runs on.

usage: gpu.py DEVMAP [--part PART,...] [--seed N] [--small] [--root REPOSITORY] [--models FOLDER] [--binaries FOLDER] [--table FILE]

Exit status 1 where a bar is missed. `--part help` lists the parts; without --part all run. DEVMAP is a binary with the
CUDA backend; test binaries of Go lie in the folder of --binaries. It needs torch, transformers and safetensors of the
Python that runs it, and no Go. `--backend cpu` tries the scripts where there is no GPU.
"""

import argparse
import importlib
import os
import random
import sys
import time

import shared

# Part: module, what it holds, in the order in which all run: what reads memory or time first, and each alone.
PARTS = {
    "memory": ("memory", "high water of every region = planned; NVML = a plan made beforehand from probe's topology, at every fence"),
    "arena": ("steps", "the arena of a step beside the peak of PyTorch's allocator"),
    "step": ("steps", "a training step beside PyTorch's, where its time goes, the simulated step beside the measured"),
    "products": ("kernels", "every product of a step beside torch.matmul, descriptors and launch included"),
    "kernels": ("kernels", "every kernel beside float64; those that only move memory beside a copy"),
    "attention": ("kernels", "attention beside float64, cuDNN and flash"),
    "loading": ("loading", "loading beside safetensors.torch.load_file and beside a copy from pinned memory"),
    "faults": ("faults", "no driver, no GPU, no room, memory that is not found, a corrupted path, a killed worker, Ctrl-C: words, status, memory given back"),
    "logits": ("accuracy", "logits and tokens of drawn models of every family: fp32, and bf16 beside PyTorch's own rounding"),
    "gradients": ("accuracy", "gradients and losses of drawn models of every family"),
    "widths": ("accuracy", "logits and gradients of real widths of every family"),
    "bits": ("bits", "1, 2, 4 program devices, both transports, repeated runs: bit for bit; the processor's fp32 beside it"),
    "sanitizer": ("kernels", "compute-sanitizer over every kernel: memcheck, racecheck"),
    "trained": ("trained", "a model of bytes trained, saved, and loaded by Transformers"),
}


def helped():
    for name, (_, what) in PARTS.items():
        print(f"  {name:10} {what}")


def asked():
    parser = argparse.ArgumentParser()
    parser.add_argument("devmap")
    parser.add_argument("--part", default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--small", action="store_true", help="fewer and smaller cases, to try the scripts")
    parser.add_argument("--root", default=os.path.join(shared.HERE, *[".."] * 4))
    parser.add_argument("--models", default="")
    parser.add_argument("--binaries", default="bin")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--gpu", default="", help="plan for a GPU of the catalogue, and probe nothing")
    parser.add_argument("--table", default="", help="a file for the figures as a table of Markdown")
    args = parser.parse_args()
    args.devmap = os.path.abspath(args.devmap)
    args.parts = [name for name in args.part.split(",") if name] or list(PARTS)
    if args.parts == ["help"]:
        helped()
        sys.exit(0)
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: there are {', '.join(PARTS)}")
    return args


def carried_out(name, held, figures):
    begun = time.monotonic()
    held.spent.clear()
    with figures.attempt(name, "the part"):
        getattr(importlib.import_module(PARTS[name][0]), name)(held, figures)
    spent = ", ".join(f"{program} {seconds:.1f}" for program, seconds in held.spent.items())
    figures.told(name, "seconds of the part", f"{time.monotonic() - begun:.0f}", spent)


def markdown(figures, heading):
    """Rows of parts with few figures; of those with many, each kind of figure by its worst."""
    out = [*heading, "", "| part | case | figure | bar | |", "|---|---|---|---|---|"]
    sections = dict.fromkeys(row[0] for row in figures.rows)
    for section in sections:
        rows = [row for row in figures.rows if row[0] == section]
        if len(rows) > 60:
            judged = [row for row in rows if row[4] is not None]
            missed = [row for row in rows if "MISSED" in row[3]]
            out.append(f"| {section} | {len(rows)} figures, {len(missed)} missed | | | |")
            rows = (missed + sorted(judged, key=lambda row: -row[4]))[:12]
        out += [f"| {section} | {case} | {figure} | {bar} | {note.replace('|', '/')} |" for _, case, figure, bar, _, note in rows]
    return "\n".join(out) + "\n"


def main():
    args = asked()
    from figures import Figures

    figures = Figures()
    with shared.scratch() as folder:
        held = shared.Shared(args, folder)
        heading = [f"seed {args.seed}", *shared.machine(args.devmap)]
        print(*heading, sep="\n", flush=True)
        figures.head()
        for name in args.parts:
            carried_out(name, held, figures)
    if args.table:
        with open(args.table, "w") as file:
            file.write(markdown(figures, heading))
    sys.exit(figures.tail(args.seed))


if __name__ == "__main__":
    main()
