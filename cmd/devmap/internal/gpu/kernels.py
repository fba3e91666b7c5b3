"""Kernels alone: products, what only moves memory, attention; each script lies beside its kernels."""

import functools
import os
import re
import subprocess
import sys

PRODUCT, COPY, ATTENTION = 0.97, 0.8, 1.0
MOVES = ("norm", "qknorm", "rope", "gate", "softmax_sums", "loss_backward", "adamw", "square")  # held to a copy
TOOLS, SHARES = ("racecheck", "memcheck"), 8
CHECKED = ("norms", "sums", "checksums", "embeddings", "gates", "ropes", "losses", "decodes", "updates")
CUDA = ("executor", "cuda", "internal")


def said(shared, script, *words, timeout=240, **environment):
    """The lines that a script beside kernels prints; a failure says its last ones."""
    path = os.path.join(shared.root, *CUDA, *script)
    done = subprocess.run([sys.executable, path, *map(str, words)], cwd=os.path.dirname(path), capture_output=True, text=True, check=False, timeout=timeout,
                          env=os.environ | {"DEVMAP_TEST_GPU": "1"} | environment)
    return done.stdout.splitlines(), done.returncode, (done.stdout + done.stderr).strip().splitlines()[-3:]


def products(shared, figures):
    """Every product of both models' steps beside torch's same work, and torch.matmul alone, as a step gives it."""
    test = os.path.join(shared.binaries, "kernel.test")
    lines, status, last = said(shared, ("blas", "speed.py"), test)
    for line in lines:
        if found := re.match(r"(\S+) +(\d+) ([nt]{2} .*?\S)" + 3 * r" +([\d.]+) +(\d+)" + r" +([\d.]+) +([\d.]+)$", line):
            model, times, product, own, rate, same, _, alone, _, ratio, _ = found.groups()
            product = re.sub(" +", " ", product)
            figures.reaching("products", f"{model} {product}", float(ratio), PRODUCT, f"{times} a step; {own} ms, {rate} TFLOP/s; torch {same} ms, torch.matmul alone {alone} ms")
        elif found := re.match(r"(\S+) +a step: (.*): ([\d.]+), ([\d.]+)$", line):
            figures.reaching("products", f"{found[1]}, a step's", float(found[3]), PRODUCT, f"{found[2]}; torch.matmul alone {found[4]}")
    if status or not any("least torch/ours" in line for line in lines):
        raise RuntimeError(f"speed.py: exit status {status}: " + " | ".join(last))


def float64(shared, figures):
    """Every kernel beside float64: fresh data, odd sizes, poisoned outputs; what sums twice with the same bits."""
    def ours():
        lines, status, last = said(shared, ("source", "check.py"), "--seed", shared.seed)
        outputs = next((line for line in lines if re.match(r"\d+ outputs, \d+ failed", line)), "")
        count, failed = map(int, re.findall(r"\d+", outputs)) if outputs else (0, 0)
        wrong = [line for line in lines if line.startswith("FAILED")] or last * bool(status)
        figures.same("float64", "outputs of kernels in CUDA C++", count - failed - (status != 0 and not failed), count, "; ".join(wrong[:3]))

    def attention():
        _, status, last = said(shared, ("attention", "check.py"))
        figures.same("float64", "attention, forward and backward, every set", int(not status), 1, " | ".join(last))

    def prepared():
        tested(figures, "float64", os.path.join(shared.binaries, "kernel.test"), "^TestGPU(Products|Attention)$", "products and attention as a step gives them")

    shared.beside([ours, attention, prepared])


def tested(figures, section, binary, pattern, case, *flags, timeout=240):
    """Tests of Go that need a GPU, and what they say."""
    done = subprocess.run([binary, "-test.run", pattern, "-test.v", *flags], capture_output=True, text=True, check=False, timeout=timeout, env=os.environ | {"DEVMAP_TEST_GPU": "1"})
    passed, failed = done.stdout.count("--- PASS"), done.stdout.count("--- FAIL")
    why = [line.strip() for line in (done.stdout + done.stderr).splitlines() if "FAIL" in line or "Error" in line or "panic" in line or " apart" in line]
    figures.same(section, case, passed if not done.returncode else min(passed, passed + failed - 1), passed + failed, " | ".join(why[:3]) if done.returncode else "")
    if done.returncode:
        print(done.stdout[-6000:], flush=True)
    return done.stdout


def kernels(shared, figures):
    """What only moves memory beside a copy of as much."""
    lines, status, last = said(shared, ("source", "check.py"), "--seed", shared.seed, "--time", "checksums")  # float64 is a part of its own
    if not any(line.startswith("copy ") for line in lines):
        raise RuntimeError(f"check.py: exit status {status}: " + " | ".join(last))
    for line in lines:
        if found := re.match(r"(.+?) +([\d.]+) us +([\d.]+) TB/s +([\d.]+) of a copy, +([\d.]+) of one of 2 GiB", line):
            name, spent, rate, share, largest = found.groups()
            note = f"{spent} µs, {rate} TB/s, {largest} of a copy of 2 GiB"
            if name.startswith(MOVES):
                figures.reaching("kernels", name + ": of a copy of as many bytes", float(share), COPY, note)
            else:
                figures.told("kernels", name + ": of a copy of as many bytes", share, note)
        elif line.startswith("copy "):
            figures.told("kernels", "a copy", line.split(" ", 1)[1])


def sanitizer(shared, figures):
    """compute-sanitizer over every kernel: accesses and races. A process a tool and part, side by side."""
    sets = ("fp32:sm_90a", "bf16:sm_90a", "bf16:sm_80")  # the longest first
    runs = [(tool, ("attention", "check.py"), (f"sanitize={tool}", which), {"SHARE": f"{share}/{SHARES}"}) for tool in TOOLS for which in sets for share in range(SHARES)]
    runs += [(tool, ("source", "check.py"), ("--sanitize", tool, part), {}) for tool in TOOLS for part in CHECKED]
    faults = {(tool, script[0]): [] for tool, script, _, _ in runs}

    def one(tool, script, words, environment):
        try:
            lines, status, last = said(shared, script, *words, **environment)
        except subprocess.TimeoutExpired as over:
            lines, status, last = [], 1, [f"it did not end in {over.timeout} s"]
        why = [line for line in lines if "SUMMARY" in line][-1:] or last
        faults[tool, script[0]].append(f"{' '.join(words)}: exit status {status}: {' | '.join(why)}" if status else "")

    shared.beside([functools.partial(one, *run) for run in runs], at_once=12)
    for (tool, folder), found in faults.items():
        wrong = [why for why in found if why]
        figures.same("sanitizer", f"{tool}, kernels of {folder}: runs without a finding", len(found) - len(wrong), len(found), "; ".join(wrong[:3]))


def attention(shared, figures):
    """Attention beside cuDNN's speed, or flash's where torch gives cuDNN no window."""
    lines, status, last = said(shared, ("attention", "speed.py"))
    case, told = "", []
    for line in lines:
        if re.match(r"(bf16|fp32) \d+x\d+", line):
            case, told = line, []
        elif line.startswith("  ratio") and (found := re.search(r"of (\S+): forward ([\d.]+) backward ([\d.]+)$", line)):
            for way, ratio in (("forward", found[2]), ("backward", found[3])):
                figures.reaching("attention", f"{case}, {way}, of {found[1]}", float(ratio), ATTENTION, "; ".join(told))
        elif found := re.match(r"  (\S+) +forward +([\d.]+ \( *\d+\)) +backward +([\d.]+ \( *\d+\))", line):
            told.append(f"{found[1]} {found[2]}, {found[3]} ms (TFLOP/s)")
    if status or not case:
        raise RuntimeError(f"speed.py: exit status {status}: " + " | ".join(last))
