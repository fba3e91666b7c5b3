"""Several GPUs: pipelines, their memory, their speed beside one GPU's and beside PyTorch's own pipelines on the same cut."""

import dataclasses
import json
import os
import statistics

from engine import Job
from peers import held, lacking, visible
from shared import MIB, nearest, parts_of, simulated, warm

PIPELINE, PYTORCH = 0.9, 1.0
MICRO_BATCHES = 16
NAME = "pipelines"
# By GPUs: what is cut for time, with how many steps on all of them and on one; schedules that the first of these has besides;
# what is cut for memory, in so many micro-batches, and GiB of the fullest arena. More GPUs have what the nearest fewer have.
CASES = {
    2: ({"llama-3.2-1b": (8, 8), "qwen2.5-3b": (6, 6)}, ("gpipe", "interleaved"), ()),
    4: ({"llama-3.1-8b": (5, 3), "qwen2.5-3b": (6, 4)}, (), (("llama-3.1-8b", 8, 30),)),
}
STEPS = 5  # of what is cut for memory, and of other schedules
SMALL = {"llama-3.2-1b": (4, 4)}


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
    folder: str = ""  # of the model, where it is another than the name's
    csv: str = ""  # the schedule's file, where PyTorch has no class of it

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
        job = {name: getattr(self.job, name) for name in ("schedule", "batch", "micro_batches", "seq", "recompute")}
        return {"name": self.name, "model": os.path.basename(self.folder) or self.model, "stages": stages, "steps": steps, "csv": self.csv} | job


def pipelined(shared, engine, count, model, steps, objective="time", **over):
    """The cut whose predicted step is the shortest, or whose fullest GPU is the emptiest, run by devmap."""
    job = job_of(shared, count, **over)
    plan = engine.plan(shared.config(model), job, "--objective", objective, *shared.topology(count, True))
    with open(plan) as file:
        stages = json.load(file)["stages"]
    ran = engine.run(plan, "--weights", "random", "--steps", str(steps))
    cut = "" if objective == "time" else f" in {job.micro_batches} micro-batches, cut for {objective}"
    return Pipelined(f"{model} {job.schedule} on {count} GPUs{cut}", model, job, stages, ran.report, engine.simulated(plan))


def pipelines(shared, figures):
    if lacking(shared, figures, NAME):
        return
    count = visible(shared)
    engine = shared.engine(NAME, spread=True)
    timed, schedules, fullest = (SMALL, *nearest(CASES, count)[1:]) if shared.small else nearest(CASES, count)
    if shared.small:
        fullest = [(next(iter(SMALL)), *case[1:]) for case in fullest]
    found = []

    def added(*words, **over):
        found.append(pipelined(shared, engine, count, *words, **over))
        held(figures, NAME, found[-1].name, found[-1].report)
        return found[-1]

    for number, (model, (steps, alone)) in enumerate(timed.items()):
        with figures.attempt(NAME, f"{model} 1f1b on {count} GPUs"):
            run = added(model, steps)
            scaled(figures, run, count, warm(single(shared, engine, count, model, alone)))
        for model, micro_batches, room in fullest if number == 0 else ():
            with figures.attempt(NAME, f"{model}: the fullest arena"):
                full(figures, added(model, STEPS, objective="memory", micro_batches=micro_batches), room)
    for schedule in schedules:
        with figures.attempt(NAME, f"{next(iter(timed))} {schedule} on {count} GPUs"):
            told(figures, added(next(iter(timed)), STEPS, schedule=schedule))
    beside(figures, shared, engine, found)
    engine.clear()


def single(shared, engine, count, model, steps):
    """The report of the same step on the first of the GPUs, all micro-batches one after another."""
    plan = engine.plan(shared.config(model), job_of(shared, 1), *one_of(shared, engine, count))
    return engine.run(plan, "--weights", "random", "--steps", str(steps)).report


def full(figures, run, room):
    most = max(device["measured"]["peak_allocated_bytes"] for device in run.report["devices"])
    figures.within(NAME, f"{run.name}: fullest arena, GiB", most / (1 << 30), room)
    told(figures, run)


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
    note = f"{tokens / run.seconds:.0f} tokens/s, {1e3 * run.seconds:.1f} ms; one GPU {1e3 * alone:.1f} ms for the same micro-batches; simulated bubble {100 * run.bubble:.1f} %"
    figures.reaching(NAME, f"{run.name}: tokens/s / ({count} × one GPU's × (1 − bubble))", tokens / run.seconds / ideal, PIPELINE, note)
    simulated(figures, NAME, run.name, run.simulated["step_seconds"], run.seconds)
    went(figures, run)


def told(figures, run):
    foretold = run.simulated["step_seconds"]
    note = f"{1e3 * run.seconds:.1f} ms, simulated {1e3 * foretold:.1f} ({100 * (foretold / run.seconds - 1):+.1f} %), simulated bubble {100 * run.bubble:.1f} %"
    figures.told(NAME, f"{run.name}: tokens/s", f"{run.job.batch * run.job.seq / run.seconds:.0f}", note)
    went(figures, run)


def went(figures, run, section=NAME):
    """Of the last step, a GPU after another, the milliseconds of its parts; what they are simulated to compute and to send."""
    parts = []
    for device, planned in zip(run.report["steps"][-1]["devices"], run.simulated["devices"]):
        busy = " + ".join(f"{stream['busy_ticks'] / 1e9:.1f} {stream['stream']}" for stream in planned["streams"])
        parts.append(f"GPU {device['device']}: {parts_of(device)} (simulated {busy})")
    figures.told(section, f"{run.name}: where a step goes, ms", "", "; ".join(parts))


def beside(figures, shared, engine, found, section=NAME, barred=("1f1b",)):
    """PyTorch's own pipelines on the same cuts, all by one set of processes; each is judged as it ends. Schedules in barred have a bar."""
    if not found:
        return
    path, left = engine.place("cases.json"), {run.name: run for run in found}
    with open(path, "w") as file:
        json.dump([run.case(shared) for run in found], file)
    folder = {os.path.dirname(run.folder or shared.config(run.model)) for run in found}.pop()
    with figures.attempt(section, "torch.distributed.pipelining"):
        for row in map(json.loads, shared.streamed("pipelining.py", folder, path)):
            judged(figures, left.pop(row["name"]), row, section, barred)
    for name in left:
        figures.told(section, f"{name}: devmap / torch.distributed.pipelining", "none", "its processes ended before")


def judged(figures, run, row, section, barred):
    peaks = ", ".join(f"{device['measured']['peak_allocated_bytes'] / MIB:.0f} of {peak / MIB:.0f}" for device, peak in zip(run.report["devices"], row["peak_allocated_bytes"]))
    note = f"tokens/s on the same cut ({'+'.join(str(len(stage['units'])) for stage in run.stages)} units); {1e3 * run.seconds:.1f} ms, PyTorch {1e3 * row['seconds']:.1f} ms; arenas of PyTorch's peaks, MiB: {peaks}"
    case, ratio = f"{run.name}: devmap / torch.distributed.pipelining", row["seconds"] / run.seconds
    if run.job.schedule in barred:
        figures.reaching(section, case, ratio, PYTORCH, note)
    else:
        figures.told(section, case, f"{ratio:.3g}", note)
