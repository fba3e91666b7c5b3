"""Generation: devmap, Transformers' static cache with compile, and the time in which a GPU reads the weights."""

import json
import os

from engine import Job
from shared import simulated

RATE = 4.2e12  # bytes a second of weights: what the limit counts
# Model, batch, prompt, new tokens; at least so much of the limit, of Transformers, and so many tokens a second. 0: no bar.
CASES = (
    ("llama-3.2-1b", 1, 128, 128, 0.75, 2.5, 0), ("llama-3.1-8b", 1, 128, 128, 0.85, 0, 0),
    ("llama-3.2-1b", 16, 512, 128, 0, 0, 14000), ("qwen2.5-3b", 1, 128, 128, 0.75, 0, 0),
)
PREFILL = ("llama-3.2-1b", 8, 4096)


def decode(shared, figures):
    for model, batch, seq, new, limit, compiled, rate in CASES[: 1 if shared.small else None]:
        if shared.small:
            seq, new = 16, 8
        name = f"{model}, batch {batch}, {seq} + {new}"
        with figures.attempt("decode", name):
            engine = shared.engine("decode")
            job = Job(batch=batch, seq=seq, new_tokens=new, precision="bf16-true")
            made = engine.plan(shared.config(model), job, *shared.topology(1))
            report = engine.run(made, "--weights", "random", "--steps", "3").report
            ours = report["tokens_per_second"]
            figures.told("decode", f"{name}: devmap, tokens/s", f"{ours:.0f}", f"the prompt and {new} tokens in {1e3 * report['step_seconds']['measured']:.1f} ms")
            if rate:
                figures.reaching("decode", f"{name}: tokens/s", ours, rate, "")
            simulated(figures, "decode", name, report["step_seconds"]["predicted"], report["step_seconds"]["measured"])
            peer(shared, figures, name, (model, batch, seq, new), ours, limit, compiled)
    prefill(shared, figures)


def prefill(shared, figures):
    """The time to the first token of long prompts, and Transformers' forward of the same."""
    model, batch, seq = PREFILL
    if shared.small:
        batch, seq = 2, 16
    name = f"{model}, {batch} prompts of {seq}"
    with figures.attempt("decode", name):
        engine = shared.engine("decode")
        job = Job(batch=batch, seq=seq, new_tokens=2, precision="bf16-true")
        report = engine.run(engine.plan(shared.config(model), job, *shared.topology(1)), "--weights", "random", "--steps", "3").report
        took = report["first_token_seconds"]
        figures.told("decode", f"{name}: ms to the first token", f"{1e3 * took:.1f}", f"{batch * seq / took:.0f} tokens/s of the prompts")
        if shared.kind == "cpu" or shared.small:
            return
        case = f"{model}/prefill"
        theirs = shared.peer(case, batch=batch, seq=seq)[case]["seconds"]
        figures.told("decode", f"{name}: Transformers / devmap", f"{theirs / took:.2f}", f"{1e3 * theirs:.1f} ms of its forward")


def peer(shared, figures, name, case, ours, limit, compiled):
    """The same of Transformers, and the limit, whose weights are those of its model."""
    if shared.kind == "cpu" or shared.small:
        return
    folder = os.path.dirname(shared.config(case[0]))
    theirs = json.loads(shared.python("generate.py", folder, ":".join(map(str, case))).splitlines()[-1])
    most, rate = case[1] * RATE / theirs["weights"], theirs["tokens_per_second"]
    figures.told("decode", f"{name}: limit, tokens/s", f"{most:.0f}", f"{theirs['weights'] / 1e9:.2f} GB of weights a token at {RATE / 1e12} TB/s")
    figures.told("decode", f"{name}: Transformers, tokens/s", f"{rate:.0f}", f"static cache, compiled; {theirs['versions']}")
    for what, value, bar in (("devmap / limit", ours / most, limit), ("devmap / Transformers", ours / rate, compiled)):
        if bar:
            figures.reaching("decode", f"{name}: {what}", value, bar, "")
        else:
            figures.told("decode", f"{name}: {what}", f"{value:.2f}", "")
