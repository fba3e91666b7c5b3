"""Several GPUs: what goes between them, one device's bits on all of them, even maps, a file onto all at once."""

import functools
import json
import os
import re
import subprocess
import tempfile

from bits import TRANSPORTS, compared, llama
from engine import Job
from kernels import tested
from shared import MIB, SCRATCH

COPIES, LOADED, EVEN = 0.97, 0.85, 0.005
TOLERANCE, SHARE, WORKSPACE = 16 * MIB, 0.001, "workspace"
SIZES = (8 << 20, 16 << 20, 256 << 20)  # of copies, as TestGPUPeers has them
MODELS, LOADS = ("llama-3.1-8b", "qwen2.5-3b"), "llama-3.1-8b"


def visible(shared):
    """GPUs that CUDA shows; a processor tries the script as two, or as many as CUDA_VISIBLE_DEVICES names."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return len([one for one in shown.split(",") if one])
    if shared.kind == "cpu":
        return 2
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")


def lacking(shared, figures, section):
    """Says that a part is not run where there is one GPU."""
    if visible(shared) > 1:
        return False
    figures.told(section, "several GPUs", "not run", "needs 2 GPUs")
    return True


def measured(shared):
    """PyTorch's copies, measured once."""
    return shared.once("copied", lambda: json.loads(shared.python("copies.py", *SIZES)))


def copies(shared, figures):
    """Both in this run: the lines of the backend's own test, and torch's copies of the same sizes."""
    if lacking(shared, figures, "copies"):
        return
    said = tested(figures, "copies", os.path.join(shared.binaries, "cuda.test"), "^TestGPUPeers$", "every pair of GPUs, each way: copies are measured")
    ours = {tuple(map(int, found[:3])): (float(found[3]), float(found[4]), found[5]) for found in re.findall(r"copy (\d+) (\d+) (\d+) (\d+) (\S+) staged (\w+)", said)}
    for source, target, size, rate in measured(shared)["peers"]:
        (own, _, staged), latency = ours[source, target, size], ours[source, target, SIZES[-1]][1]  # behind large ones all is given in time
        note = f"{own / 1e9:.1f} GB/s, torch {rate / 1e9:.1f} GB/s, latency {1e6 * latency:.1f} µs" + ", by way of the host" * (staged == "true")
        figures.reaching("copies", f"copies of {size >> 20} MiB from GPU {source} to GPU {target}: devmap / torch", own / rate, COPIES, note)


def ways(count, mode):
    """The first is what the others are held to."""
    yield 1, {}, ""
    for transport in TRANSPORTS:
        yield count, {"strategy": "pipeline", **({"schedule": "1f1b"} if mode == "train" else {})}, transport
    yield count, {}, TRANSPORTS[0]
    if mode == "train":
        yield count, {"strategy": "pipeline", "schedule": "interleaved", "recompute": "full"}, TRANSPORTS[0]


def across(shared, figures):
    """One device's bits on all GPUs: of inference, generation and training at once, as nothing is timed."""
    if lacking(shared, figures, "across"):
        return
    count = visible(shared)
    layers = 2 * count
    folder, ids = llama(shared, shared.engine("across"), layers)

    def mode(name):
        engine = shared.engine("across", spread=True)
        with figures.attempt("across", f"bits, {name}"):
            compared(engine, figures, name, folder, ids, functools.partial(ways, count), "across", layers)
        engine.clear()

    shared.beside([functools.partial(mode, name) for name in ("train", "infer", "decode")])


def held(figures, section, name, report):
    """High water of every region, and of each GPU the fence that is furthest from what was planned."""
    regions = [(device["device"], region) for device in report["devices"] for region in device["regions"] if region["name"] != WORKSPACE]
    odd = [f"GPU {device} {region['name']}: {region['touched_bytes']} of {region['planned_bytes']}" for device, region in regions if region["touched_bytes"] != region["planned_bytes"]]
    figures.same(section, f"{name}: regions whose highest written byte is the last that was planned", len(regions) - len(odd), len(regions), "; ".join(odd[:4]))
    for gpu in report.get("gpus", []):
        planned, measured = gpu["predicted_used_bytes"], gpu["measured"]
        names = ("ready_bytes", "fence_low_bytes", "fence_high_bytes")[: 3 if measured["fences"] else 1]  # not every GPU has a fence
        worst = max((measured[name] - measured["before_bytes"] for name in names), key=lambda reading: abs(reading - planned))
        note = f"{worst / MIB:.0f} MiB, {planned / MIB:.0f} planned; context {(measured['context_bytes'] - measured['before_bytes']) / MIB:.0f}, arenas {measured['arena_bytes'] / MIB:.0f}"
        figures.within(section, f"{name}: GPU {gpu['gpu']}, NVML beside the plan, MiB apart", abs(worst - planned) / MIB, max(TOLERANCE, SHARE * planned) / MIB, note)


def even(shared, figures):
    """Maps made for memory: how much the fullest arena has beyond the mean, beside what the plan says."""
    if lacking(shared, figures, "even"):
        return
    count, engine = visible(shared), shared.engine("even", spread=True)
    for model in MODELS[: 1 if shared.small else None]:
        name = f"{model} train 4 × {shared.seq} on {count} GPUs"
        with figures.attempt("even", name):
            plan = engine.plan(shared.config(model), Job(mode="train", gpus=count, batch=4, seq=shared.seq, precision="bf16-true"), *shared.topology(count, True))
            ran = engine.run(plan, "--weights", "random", "--steps", "2")
            both = ran.report["imbalance"]
            figures.within("even", f"{name}: largest arena / mean, measured − planned", both["measured"] - both["predicted"], EVEN, f"{both['measured']:.4f} measured, {both['predicted']:.4f} planned")
            held(figures, "even", name, ran.report)
    engine.clear()


def onto(shared, figures):
    """An 8B model's file, in the page cache of a disk, onto all GPUs at once: the first loads are left out."""
    if lacking(shared, figures, "onto"):
        return
    count, model = visible(shared), "llama-3.2-1b" if shared.small else LOADS
    with tempfile.TemporaryDirectory(prefix="devmap-gpu-", dir="/var/tmp") as place:
        SCRATCH.append(place)
        shared.python("weights.py", os.path.dirname(shared.config(model)), place, model)
        engine = shared.engine("onto", spread=True)
        plan = engine.plan(os.path.join(place, model), Job(mode="load", gpus=count, precision="bf16-true"))
        found = [engine.run(plan).report.get("loading") for _ in range(4)][1:]
    if shared.kind == "cpu":
        figures.told("onto", "loading", "left out", "it says nothing where there is no GPU")
        return
    ours, theirs = max(one["bytes_per_second"] for one in found), measured(shared)
    note = f"{found[0]['bytes'] / MIB:.0f} MiB of {model}, of 3 the fastest (" + ", ".join(f"{one['bytes_per_second'] / 1e9:.1f}" for one in found) + " GB/s)"
    alone = ", ".join(f"{rate / 1e9:.1f}" for rate in theirs["hosts"])
    figures.reaching("onto", f"{model} onto {count} GPUs: devmap / copies from pinned memory to all at once", ours / theirs["host"], LOADED, f"{note}; copies {theirs['host'] / 1e9:.1f} GB/s, one after another {alone}")
