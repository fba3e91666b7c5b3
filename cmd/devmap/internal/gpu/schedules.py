"""Several GPUs: the schedules of a pipeline in devmap's engine, and torch's own classes on the same cuts."""

import json
import math

from engine import Failed, Job
from peers import lacking, visible
from peers import held as memory
from pipelines import Pipelined, beside
from shared import SIMULATED, parts_of

NAME = "schedules"
MODEL, BATCH, MICRO_BATCHES, STEPS = "llama-3.1-8b", 16, 8, 5
FIRST, CAPPED = "1f1b", "auto within 1f1b's memory"
HALF, LIGHT = "v-half", "auto with blocks recomputed, within v-half's bar of activations"
KINDS = (FIRST, "zb-h1", "zbv", CAPPED, HALF, "auto", "v-min", LIGHT)
PEERS = (FIRST, "zbv")  # torch has a class for these
RATIOS = {"zb-h1": 1.10, HALF: 1.0, CAPPED: 1.12, LIGHT: 1.0}  # seconds of 1F1B / seconds, of issue 45
ACTIVATIONS = 0.6  # of the GPU with most of HALF and LIGHT / that of 1F1B


class Planned:
    """A plan, with what it predicts."""

    def __init__(self, kind, path, job):
        self.kind, self.path, self.job = kind, path, job
        with open(path) as file:
            self.plan = json.load(file)
        self.seconds = self.plan["step_seconds"]

    @property
    def used(self):
        """Bytes of each GPU, with the context."""
        return [device["predicted"]["device_used_bytes"] for device in self.plan["devices"]]

    @property
    def activations(self):
        return max(device["predicted"]["activations_bytes"] for device in self.plan["devices"])

    @property
    def runs(self):
        """What decides the step: equal plans are run once."""
        workload, stages = self.plan["workload"], [(stage["device"], stage["units"]) for stage in self.plan["stages"]]
        return json.dumps([workload["schedule"], workload["recompute"], workload["micro_batches"], stages])

    def shape(self):
        """Name of the schedule, and the units of each stage."""
        name = self.plan["workload"]["schedule"]
        return (name if len(name) < 20 else name.split(":")[0]) + " " + "+".join(str(len(stage["units"])) for stage in self.plan["stages"])


def planned(shared, engine, count):
    """All plans of the part, in the order of their runs."""
    out, flags = {}, shared.topology(count, True)
    for kind in KINDS:
        job = Job(mode="train", gpus=count, strategy="pipeline", batch=BATCH, micro_batches=MICRO_BATCHES, seq=shared.seq, precision="bf16-true", schedule=kind.split()[0], recompute="auto" if kind == LIGHT else "")
        more = ["--objective", "time"]
        if kind == CAPPED:
            more += ["--reserve", str(min(device["headroom_bytes"] for device in out[FIRST].plan["devices"]))]
        out[kind] = Planned(kind, engine.plan(shared.config(MODEL), job, *more, *flags), job)
        if kind in (HALF, LIGHT):
            out[kind] = lighter(shared, engine, out[kind], int(ACTIVATIONS * out[FIRST].activations))
    return out


def lighter(shared, engine, last, most):
    """Plans again with less memory for the GPUs with more activations than this, until none has or nothing fits."""
    topology = last.plan["topology"]
    while last.activations > most:
        for device, planned in zip(topology["devices"], last.plan["devices"]):
            used, over = planned["predicted"]["device_used_bytes"], planned["predicted"]["activations_bytes"] - most
            if over > 0:
                device["reserved_bytes"] = device["capacity_bytes"] - used + over
        path = engine.place("less.json")
        with open(path, "w") as file:
            json.dump(topology, file)
        try:
            last = Planned(last.kind, engine.plan(shared.config(MODEL), last.job, "--objective", "time", "--topology", path), last.job)
        except Failed:
            break
    return last


def schedules(shared, figures):
    if lacking(shared, figures, NAME):
        return
    count = visible(shared)
    engine = shared.engine(NAME, spread=True)
    plans = planned(shared, engine, count)
    for plan in plans.values():
        note = f"{plans[FIRST].seconds / plan.seconds:.3f} × 1F1B; {plan.shape()} units; GiB of each GPU: " + " ".join(f"{used / (1 << 30):.2f}" for used in plan.used)
        figures.told(NAME, f"{MODEL} {plan.kind}: predicted step, ms", f"{1e3 * plan.seconds:.1f}", note)
    ran = {}
    for plan in plans.values():
        with figures.attempt(NAME, f"{MODEL} {plan.kind} on {count} GPUs"):
            same = next((kind for kind in ran if plans[kind].runs == plan.runs), None)
            ran[plan.kind] = ran[same] if same else once(shared, engine, plan, count)
            judged(figures, plans, ran, plan.kind, same)
            if plan.kind != FIRST and not same and "topology" in ran[FIRST].report:
                timed(figures, engine, plan, ran)
        if plan.kind == PEERS[-1]:
            beside(figures, shared, engine, [ran[kind] for kind in PEERS if kind in ran], NAME, PEERS)
    losses = {json.dumps([step["loss"] for step in run.report["steps"]]) for run in ran.values()}
    figures.same(NAME, "schedules whose losses have the bits of 1F1B's", len(ran) * (len(losses) == 1), len(KINDS), next(iter(losses), ""))
    engine.clear()


def once(shared, engine, plan, count):
    report = engine.run(plan.path, "--weights", "random", "--steps", str(STEPS)).report
    return Pipelined(f"{MODEL} {plan.kind} on {count} GPUs", MODEL, plan.job, plan.plan["stages"], report, {})


def judged(figures, plans, ran, kind, same):
    """Seconds against 1F1B's and against the prediction, memory against the plan, and the parts of a step."""
    run, plan, first = ran[kind], plans[kind], ran.get(FIRST)
    note = f"{1e3 * run.seconds:.1f} ms, predicted {1e3 * plan.seconds:.1f}" + (f"; the plan of {same}" if same else "")
    ratio = first.seconds / run.seconds if first else math.nan
    if kind in RATIOS:
        figures.reaching(NAME, f"{run.name}: 1F1B / this", ratio, RATIOS[kind], note)
    else:
        figures.told(NAME, f"{run.name}: 1F1B / this", f"{ratio:.3f}", note)
    if kind in (HALF, LIGHT):
        figures.within(NAME, f"{run.name}: activations of the fullest GPU / 1F1B's", plan.activations / plans[FIRST].activations, ACTIVATIONS)
    if same:
        return
    figures.within(NAME, f"{run.name}: predicted / measured − 1", abs(plan.seconds / run.seconds - 1), SIMULATED)
    memory(figures, NAME, run.name, run.report)
    parts = (f"GPU {device['device']}: {parts_of(device)}" for device in run.report["steps"][-1]["devices"])
    figures.told(NAME, f"{run.name}: parts of the last step, ms", "", "; ".join(parts))


def timed(figures, engine, plan, ran):
    """The step again, by the seconds of forwards, backwards and updates that 1F1B's run measured."""
    path = engine.place("timed.json")
    with open(path, "w") as file:
        json.dump(plan.plan | {"topology": ran[FIRST].report["topology"]}, file)
    seconds, run = engine.simulated(path)["step_seconds"], ran[plan.kind]
    note = f"{1e3 * seconds:.1f} ms"
    figures.within(NAME, f"{run.name}: predicted by 1F1B's measured times / measured − 1", abs(seconds / run.seconds - 1), SIMULATED, note)
