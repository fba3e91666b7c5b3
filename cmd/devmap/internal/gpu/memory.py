"""Memory of real models: every region's high water, and what NVML shows beside a plan made beforehand."""

import functools

from engine import Job
from shared import MIB

TOLERANCE, SHARE = 16 * MIB, 0.001
WORKSPACE = "workspace"  # a library's: how much of it is written is the library's to say
MODELS = ("llama-3.2-1b", "qwen2.5-3b", "llama-3.1-8b")
DEVICES = (1, 2, 4)


def jobs(model, devices, small):
    """What is planned and run of a model on some program devices."""
    spread = {"gpus": devices, "precision": "bf16-true", **({"strategy": "pipeline"} if devices > 1 else {})}
    yield "prefill", Job(batch=4, seq=2048, **spread)
    yield "decode", Job(batch=4, seq=512, new_tokens=16, **spread)
    for recompute in ("none", "full"):
        if model != "llama-3.1-8b" or recompute == "full":
            yield "training", Job(mode="train", batch=4, seq=2048, micro_batches=4 if devices > 1 else 1, recompute=recompute, **spread)


def memory(shared, figures):
    models = MODELS[:1] if shared.small else MODELS
    shared.checkpoint(*models)
    for model in models:
        for devices in DEVICES:
            for name, job in jobs(model, devices, shared.small):
                case = f"{model} {name} {job}"
                with figures.attempt("memory", case):
                    one(shared, figures, case, model, job)


def plan(shared, engine, model, job):
    """The plan, made by a process of its own from what `probe` wrote of the GPU."""
    return engine.plan(shared.checkpoint(model), job, *shared.topology(job.gpus))


def one(shared, figures, case, model, job):
    from nvml import Gauge

    engine = shared.engine("memory")
    made = plan(shared, engine, model, job)
    steps = ["--new-tokens", str(job.new_tokens)] if job.new_tokens else ["--steps", "2"]
    gauge = Gauge()
    before = gauge.used()
    ran, most = gauge.during(functools.partial(engine.run, made, *steps))
    after = gauge.settled(before)
    regions = [region for device in ran.report["devices"] for region in device["regions"] if region["name"] != WORKSPACE]
    odd = [f"{region['name']}: {region['touched_bytes']} of {region['planned_bytes']}" for region in regions if region["touched_bytes"] != region["planned_bytes"]]
    figures.same("memory", case + ": regions", len(regions) - len(odd), len(regions), "; ".join(odd[:4]))
    used(figures, case, ran.report, most)
    figures.same("memory", case + ": NVML given back", int(after <= before), 1, f"{before / MIB:.1f} before, {after / MIB:.1f} MiB after")
    figures.same("memory", case + ": verdict pass", int(ran.report["verdict"] == "pass"), 1, "" if ran.report["verdict"] == "pass" else f"{ran.report['verdict']}: {'; '.join(ran.report['reasons'])}")


def used(figures, case, report, most):
    """Of each GPU the fence that is furthest from what was planned; and that no more was used between fences."""
    for gpu in report["gpus"]:
        planned, measured = gpu["predicted_used_bytes"], gpu["measured"]
        if not measured["fences"]:
            raise ValueError("no fence was measured")
        low, high = measured["fence_low_bytes"] - measured["before_bytes"], measured["fence_high_bytes"] - measured["before_bytes"]
        worst = max(low, high, key=lambda reading: abs(reading - planned))
        parts = f"context {(measured['context_bytes'] - measured['before_bytes']) / MIB:.1f}, arenas {measured['arena_bytes'] / MIB:.1f}"
        note = f"{low / MIB:.1f} to {high / MIB:.1f} at {measured['fences']} fences, {planned / MIB:.1f} MiB planned; {parts}"
        figures.within("memory", case + ": NVML − plan, MiB", abs(worst - planned) / MIB, max(TOLERANCE, SHARE * planned) / MIB, note)
        outside = most - measured["before_bytes"] - max(high, measured["ready_bytes"] - measured["before_bytes"])
        figures.within("memory", case + ": seen from outside − at fences, MiB", outside / MIB, TOLERANCE / MIB)
