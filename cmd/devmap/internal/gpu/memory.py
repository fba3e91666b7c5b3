"""Memory of real models: every region's high water, and what NVML shows beside a plan made beforehand."""

import functools
import time

from engine import Job
from shared import MIB, gauge, spending

TOLERANCE, SHARE = 16 * MIB, 0.001
WORKSPACE = "workspace"  # a library's: how much of it is written is the library's to say
# And as how many program devices.
MODELS = (("llama-3.2-1b", (1, 2, 4)), ("qwen2.5-3b", (1,)), ("llama-3.1-8b", (1,)), ("qwen2.5-3b", (4, 2)), ("llama-3.1-8b", (4, 2)))


def jobs(devices, seq):
    """What is planned and run on some program devices."""
    spread = {"gpus": devices, "precision": "bf16-true", **({"strategy": "pipeline"} if devices > 1 else {})}
    yield "prefill", Job(batch=4, seq=seq, **spread)
    yield "decode", Job(batch=4, seq=seq // 4, new_tokens=16, **spread)
    for recompute in ("none", "full"):
        yield "training", Job(mode="train", batch=4, seq=seq, micro_batches=4 if devices > 1 else 1, recompute=recompute, **spread)


class Seen:
    """What all runs together show."""

    def __init__(self):
        self.regions, self.odd, self.runs, self.kept, self.failed, self.outside = 0, [], 0, [], [], []


def memory(shared, figures):
    seen, begun = Seen(), time.monotonic()
    cases = [(model, *named) for model, counts in ([("llama-3.2-1b", (2,))] if shared.small else MODELS) for count in counts for named in jobs(count, shared.seq)]
    for count in sorted({job.gpus for _, _, job in cases}):
        shared.topology(count)
    for number, (model, name, job) in enumerate(cases):
        if time.monotonic() - begun > shared.seconds:
            figures.told("memory", "cases left out for want of time", str(len(cases) - number), f"from {model} {name} {job} on")
            break
        case = f"{model} {name} {job}"
        with figures.attempt("memory", case):
            one(shared, figures, seen, case, model, job)
    figures.same("memory", "regions whose highest written byte is the last that was planned", seen.regions - len(seen.odd), seen.regions, "; ".join(seen.odd[:4]))
    figures.same("memory", "runs after which the GPU held no more than before", seen.runs - len(seen.kept), seen.runs, "; ".join(seen.kept[:4]))
    figures.same("memory", "devmap's own verdicts: pass", seen.runs - len(seen.failed), seen.runs, "; ".join(seen.failed[:4]))
    if seen.outside:
        figures.within("memory", "seen by NVML from another process all the while, beyond what fences show: the most, MiB", max(seen.outside)[0] / MIB, TOLERANCE / MIB, max(seen.outside)[1])


def one(shared, figures, seen, case, model, job):
    """A plan by a process of its own from what `probe` wrote of the GPU, and its run."""
    engine = shared.engine("memory")
    made = engine.plan(shared.config(model), job, *shared.topology(job.gpus))
    flags = ["--weights", "random", *(["--new-tokens", str(job.new_tokens)] if job.new_tokens else ["--steps", "2"])]
    reading = gauge()
    before = reading.used()
    ran, most = reading.during(functools.partial(engine.run, made, *flags))
    with spending(shared.spent, "until NVML is as before"):
        after = reading.settled(before)
    seen.runs += 1
    regions = [region for device in ran.report["devices"] for region in device["regions"] if region["name"] != WORKSPACE]
    seen.regions += len(regions)
    seen.odd += [f"{case} {region['name']}: {region['touched_bytes']} of {region['planned_bytes']}" for region in regions if region["touched_bytes"] != region["planned_bytes"]]
    seen.kept += [f"{case}: {before / MIB:.1f} MiB, then {after / MIB:.1f}"] if after > before else []
    seen.failed += [f"{case}: {ran.report['verdict']}: {'; '.join(ran.report['reasons'])}"] if ran.report["verdict"] != "pass" else []
    for gpu in ran.report.get("gpus", []):
        used(figures, seen, case, gpu, most)


def used(figures, seen, case, gpu, most):
    """Of a GPU the fence that is furthest from what was planned."""
    planned, measured = gpu["predicted_used_bytes"], gpu["measured"]
    before, fences = measured["before_bytes"], measured["fences"]
    if not fences:
        raise ValueError("no fence was measured")
    low, high = measured["fence_low_bytes"] - before, measured["fence_high_bytes"] - before
    worst = max(low, high, key=lambda reading: abs(reading - planned))
    note = f"{worst / MIB:.0f} MiB, the furthest of {fences} fences; {planned / MIB:.0f} planned; context {(measured['context_bytes'] - before) / MIB:.0f}, arenas {measured['arena_bytes'] / MIB:.0f}"
    figures.within("memory", case + ": NVML beside the plan, MiB apart", abs(worst - planned) / MIB, max(TOLERANCE, SHARE * planned) / MIB, note)
    seen.outside.append((most - before - max(high, measured["ready_bytes"] - before), case))
