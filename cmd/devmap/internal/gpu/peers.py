"""Several GPUs: what goes between them, one device's bits on all of them, their memory, and pipelines beside PyTorch's."""

import dataclasses
import functools
import json
import os
import re
import statistics
import subprocess
import tempfile

from bits import TRANSPORTS, compared, llama
from engine import Job
from kernels import tested
from shared import MIB, SCRATCH, warm

COPIES, PIPELINE, PYTORCH, SIMULATED, LOADED, EVEN = 0.97, 0.9, 1.0, 0.10, 0.85, 0.005
TOLERANCE, SHARE, WORKSPACE = 16 * MIB, 0.001, "workspace"
MODELS = {"llama-3.2-1b": 8, "qwen2.5-3b": 6, "llama-3.1-8b": 5}  # and how many steps
MICRO_BATCHES, LOADS = 16, "llama-3.1-8b"
FULLEST = {4: ("llama-3.1-8b", 8, 30)}  # by GPUs, of a pipeline whose plan is made for memory: in so many micro-batches, GiB of the fullest arena
COUNTS = (2, 4, 8)
NAME = "peers"


def peers(shared, figures):
    count = visible(shared)
    parts = {
        "copies between GPUs beside torch's": copies,
        "pipelines: memory, speed beside one GPU and beside torch.distributed.pipelining, simulated step": pipelines,
        "even maps: largest arena / mean": even,
        "loading onto all GPUs at once": loading,
        "one device's bits": bits,
    }
    for part in parts.values() if count > 1 else ():
        with figures.attempt(NAME, part.__name__):
            part(shared, figures, count)
    for more in COUNTS:
        fullest = [f"{FULLEST[more][0]} in {FULLEST[more][1]} micro-batches: fullest arena"] if more in FULLEST else []
        for what in [*parts, *fullest] if more > count else ():
            figures.told(NAME, f"{what}, {more} GPUs", "not run", f"needs {more} GPUs")


def visible(shared):
    """GPUs that CUDA shows; a processor tries the script as two."""
    if shared.kind == "cpu":
        return 2
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return len([one for one in shown.split(",") if one])
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")


def copies(shared, figures, count):
    """Both in this run: the lines of the backend's own test, and torch's copies of the same sizes."""
    if shared.kind == "cpu":
        figures.told(NAME, "copies", "left out", "it says nothing where there is no GPU")
        return
    said = tested(figures, NAME, os.path.join(shared.binaries, "cuda.test"), "^TestGPUPeers$", "every pair of GPUs, each way: copies are measured")
    ours = {tuple(map(int, found[:3])): (float(found[3]), float(found[4]), found[5]) for found in re.findall(r"copy (\d+) (\d+) (\d+) (\d+) (\S+) staged (\w+)", said)}
    theirs = json.loads(shared.python("copies.py", *sorted({size for _, _, size in ours})))
    largest = max(size for _, _, size in ours)  # behind whose copies everything is given in time
    for source, target, size, rate in theirs["peers"]:
        (own, _, staged), latency = ours[source, target, size], ours[source, target, largest][1]
        note = f"{own / 1e9:.1f} GB/s, torch {rate / 1e9:.1f} GB/s, latency {1e6 * latency:.1f} µs" + ", by way of the host" * (staged == "true")
        figures.reaching(NAME, f"copies of {size >> 20} MiB from GPU {source} to GPU {target}: devmap / torch", own / rate, COPIES, note)


def ways(count, mode):
    """The first is what the others are held to."""
    yield 1, {}, ""
    for transport in TRANSPORTS:
        yield count, {"strategy": "pipeline", **({"schedule": "1f1b"} if mode == "train" else {})}, transport
    yield count, {}, TRANSPORTS[0]
    if mode == "train":
        yield count, {"strategy": "pipeline", "schedule": "interleaved", "recompute": "full"}, TRANSPORTS[0]


def bits(shared, figures, count):
    engine, layers = shared.engine("peers", spread=True), 2 * max(COUNTS[0], count)
    folder, ids = llama(shared, engine, layers)
    for mode in ("infer", "decode", "train"):
        with figures.attempt(NAME, f"bits, {mode}"):
            compared(engine, figures, mode, folder, ids, functools.partial(ways, count), NAME, layers)
    engine.clear()


def job_of(shared, count, schedule="1f1b", micro_batches=MICRO_BATCHES):
    spread = {"gpus": count, "schedule": schedule} if count > 1 else {}
    return Job(mode="train", strategy="pipeline", batch=MICRO_BATCHES, micro_batches=micro_batches, seq=shared.seq, precision="bf16-true", **spread)


@dataclasses.dataclass
class Pipelined:
    """A plan that was run."""

    name: str
    model: str
    job: Job
    stages: list
    report: dict
    simulated: dict

    @property
    def seconds(self):
        return warm(self.report)

    @property
    def bubble(self):
        """Of all GPUs together: how much of the simulated step they have nothing to compute."""
        return statistics.mean(device["bubble"] for device in self.simulated["devices"])

    def case(self, shared):
        """The same for PyTorch."""
        stages = [{"device": stage["device"], "units": stage["units"]} for stage in self.stages]
        steps = len(self.report["steps"])
        job = {name: getattr(self.job, name) for name in ("schedule", "batch", "micro_batches", "seq")}
        return {"name": self.name, "model": self.model, "stages": stages, "steps": steps} | job


def pipelined(shared, engine, count, model, objective="time", **over):
    """The cut whose predicted step is the shortest, or whose fullest GPU is the emptiest, run by devmap."""
    job = job_of(shared, count, **over)
    plan = engine.plan(shared.config(model), job, "--objective", objective, *shared.topology(count, True))
    with open(plan) as file:
        stages = json.load(file)["stages"]
    ran = engine.run(plan, "--weights", "random", "--steps", str(MODELS[model]))
    cut = "" if objective == "time" else f" in {job.micro_batches} micro-batches, cut for {objective}"
    return Pipelined(f"{model} {job.schedule} on {count} GPUs{cut}", model, job, stages, ran.report, engine.simulated(plan))


def pipelines(shared, figures, count):
    engine = shared.engine("peers", spread=True)
    models = list(MODELS)[: 1 if shared.small else None]
    found = []

    def added(*words, **over):
        found.append(pipelined(shared, engine, count, *words, **over))
        held(figures, found[-1].name, found[-1].report)
        return found[-1]

    for model in models:
        with figures.attempt(NAME, f"{model} 1f1b on {count} GPUs"):
            run = added(model)
            alone = engine.run(engine.plan(shared.config(model), job_of(shared, 1), *one_of(shared, engine, count)), "--weights", "random", "--steps", str(MODELS[model]))
            scaled(figures, run, count, warm(alone.report))
    for schedule in ("gpipe", "interleaved"):
        with figures.attempt(NAME, f"{models[0]} {schedule} on {count} GPUs"):
            told(figures, added(models[0], schedule=schedule))
    with figures.attempt(NAME, "the fullest arena"):
        for model, micro_batches, room in [FULLEST[count]] if count in FULLEST else []:
            run = added(model, objective="memory", micro_batches=micro_batches)
            most = max(device["measured"]["peak_allocated_bytes"] for device in run.report["devices"])
            figures.within(NAME, f"{run.name}: fullest arena, GiB", most / (1 << 30), room)
            told(figures, run)
    beside(figures, shared, engine, found)
    engine.clear()


def one_of(shared, engine, count):
    """Flags of plan for the first of the GPUs that were probed together."""
    flags = shared.topology(count, True)
    if flags[0] != "--topology":
        return flags
    with open(flags[1]) as file:
        topology = json.load(file)
    del topology["links"]
    path = engine.place("one.json")
    with open(path, "w") as file:
        json.dump(topology | {"devices": topology["devices"][:1]}, file)
    return ["--topology", path]


def scaled(figures, run, count, alone):
    """Beside one GPU's rate, and the simulated step."""
    tokens = run.job.batch * run.job.seq
    ideal = count * tokens / alone * (1 - run.bubble)
    note = f"{tokens / run.seconds:.0f} tokens/s, {1e3 * run.seconds:.1f} ms; one GPU {1e3 * alone:.1f} ms; simulated bubble {100 * run.bubble:.1f} %"
    figures.reaching(NAME, f"{run.name}: tokens/s / ({count} × one GPU's × (1 − bubble))", tokens / run.seconds / ideal, PIPELINE, note)
    foretold = run.simulated["step_seconds"]
    figures.within(NAME, f"{run.name}: simulated / measured − 1", abs(foretold / run.seconds - 1), SIMULATED, f"{1e3 * foretold:.1f} ms simulated, {1e3 * run.seconds:.1f} measured")
    went(figures, run)


def told(figures, run):
    foretold = run.simulated["step_seconds"]
    note = f"{1e3 * run.seconds:.1f} ms, simulated {1e3 * foretold:.1f} ({100 * (foretold / run.seconds - 1):+.1f} %), simulated bubble {100 * run.bubble:.1f} %"
    figures.told(NAME, f"{run.name}: tokens/s", f"{run.job.batch * run.job.seq / run.seconds:.0f}", note)
    went(figures, run)


def went(figures, run):
    """Of the last step, a GPU after another, the milliseconds of its parts; what they are simulated to compute and to send."""
    parts = []
    for device, planned in zip(run.report["steps"][-1]["devices"], run.simulated["devices"]):
        busy = " + ".join(f"{stream['busy_ticks'] / 1e9:.1f} {stream['stream']}" for stream in planned["streams"])
        parts.append(f"GPU {device['device']}: " + " ".join(f"{part} {1e3 * device[part + '_seconds']:.1f}" for part in ("forward", "backward", "update", "wait")) + f" (simulated {busy})")
    figures.told(NAME, f"{run.name}: where a step goes, ms", "", "; ".join(parts))


def held(figures, name, report):
    """High water of every region, and of each GPU the fence that is furthest from what was planned."""
    regions = [(device["device"], region) for device in report["devices"] for region in device["regions"] if region["name"] != WORKSPACE]
    odd = [f"GPU {device} {region['name']}: {region['touched_bytes']} of {region['planned_bytes']}" for device, region in regions if region["touched_bytes"] != region["planned_bytes"]]
    figures.same(NAME, f"{name}: regions whose highest written byte is the last that was planned", len(regions) - len(odd), len(regions), "; ".join(odd[:4]))
    for gpu in report.get("gpus", []):
        planned, measured = gpu["predicted_used_bytes"], gpu["measured"]
        names = ("ready_bytes", "fence_low_bytes", "fence_high_bytes")[: 3 if measured["fences"] else 1]  # not every GPU has a fence
        worst = max((measured[name] - measured["before_bytes"] for name in names), key=lambda reading: abs(reading - planned))
        note = f"{worst / MIB:.0f} MiB, {planned / MIB:.0f} planned; context {(measured['context_bytes'] - measured['before_bytes']) / MIB:.0f}, arenas {measured['arena_bytes'] / MIB:.0f}"
        figures.within(NAME, f"{name}: GPU {gpu['gpu']}, NVML beside the plan, MiB apart", abs(worst - planned) / MIB, max(TOLERANCE, SHARE * planned) / MIB, note)


def beside(figures, shared, engine, found):
    """PyTorch's own pipelines on the same cuts, all by one set of processes."""
    path = engine.place("cases.json")
    with open(path, "w") as file:
        json.dump([run.case(shared) for run in found], file)
    folder = {os.path.dirname(shared.config(run.model)) for run in found}.pop()
    theirs = {row["name"]: row for row in map(json.loads, shared.python("pipelining.py", folder, path).splitlines())}
    for run in found:
        with figures.attempt(NAME, f"{run.name}: devmap / torch.distributed.pipelining"):
            row = theirs[run.name]
            peaks = ", ".join(f"{device['measured']['peak_allocated_bytes'] / MIB:.0f} of {peak / MIB:.0f}" for device, peak in zip(run.report["devices"], row["peak_allocated_bytes"]))
            note = f"tokens/s on the same cut ({'+'.join(str(len(stage['units'])) for stage in run.stages)} units); {1e3 * run.seconds:.1f} ms, PyTorch {1e3 * row['seconds']:.1f} ms; arenas of PyTorch's peaks, MiB: {peaks}"
            case, ratio = f"{run.name}: devmap / torch.distributed.pipelining", row["seconds"] / run.seconds
            if run.job.schedule == "1f1b":
                figures.reaching(NAME, case, ratio, PYTORCH, note)
            else:
                figures.told(NAME, case, f"{ratio:.3g}", note)


def even(shared, figures, count):
    """Maps made for memory: how much the fullest arena has beyond the mean, beside what the plan says."""
    engine = shared.engine("peers", spread=True)
    for model in list(MODELS)[: 1 if shared.small else 3]:
        name = f"{model} train 4 × {shared.seq} on {count} GPUs"
        with figures.attempt(NAME, name):
            ran = engine.run(engine.plan(shared.config(model), Job(mode="train", gpus=count, batch=4, seq=shared.seq, precision="bf16-true"), *shared.topology(count, True)), "--weights", "random", "--steps", "2")
            both = ran.report["imbalance"]
            figures.within(NAME, f"{name}: largest arena / mean, measured − planned", both["measured"] - both["predicted"], EVEN, f"{both['measured']:.4f} measured, {both['predicted']:.4f} planned")
            held(figures, name, ran.report)
    engine.clear()


def loading(shared, figures, count):
    """An 8B model's file, in the page cache of a disk: the first loads are left out."""
    model = "llama-3.2-1b" if shared.small else LOADS
    with tempfile.TemporaryDirectory(prefix="devmap-gpu-", dir="/var/tmp") as place:
        SCRATCH.append(place)
        shared.python("weights.py", os.path.dirname(shared.config(model)), place, model)
        engine = shared.engine("peers", spread=True)
        plan = engine.plan(os.path.join(place, model), Job(mode="load", gpus=count, precision="bf16-true"))
        found = [engine.run(plan).report.get("loading") for _ in range(5)][2:]
    if shared.kind == "cpu":
        figures.told(NAME, "loading", "left out", "it says nothing where there is no GPU")
        return
    ours, theirs = max(one["bytes_per_second"] for one in found), json.loads(shared.python("copies.py"))
    note = f"{found[0]['bytes'] / MIB:.0f} MiB of {model}, of 3 the fastest (" + ", ".join(f"{one['bytes_per_second'] / 1e9:.1f}" for one in found) + " GB/s)"
    alone = ", ".join(f"{rate / 1e9:.1f}" for rate in theirs["hosts"])
    figures.reaching(NAME, f"{model} onto {count} GPUs: devmap / copies from pinned memory to all at once", ours / theirs["host"], LOADED, f"{note}; copies {theirs['host'] / 1e9:.1f} GB/s, one after another {alone}")
