"""A training step beside PyTorch's own, in time and in memory; and where the time goes."""

import csv
import os
import re
import subprocess

from engine import Job
from shared import MIB, warm

MODELS = ("llama-3.2-1b", "qwen2.5-3b")
BATCH, SEQ, STEPS = 4, 2048, 12
ARENA, PREFILL, SPEED, SIMULATED = 0.70, 1.02, 1.0, 0.10
KINDS = (
    ("attention", r"flash|fmha|attention|sdpa|cudnn"), ("products", r"gemm|cutlass|nvjet|xmma|splitK|matmul|cublas"),
    ("update", r"adam|multi_tensor|\bstep\b|square"), ("loss", r"softmax|nll|cross_entropy|loss|log"),
)


def peers(shared):
    """PyTorch's side of every part here, measured once."""
    return shared.peer(*(f"{model}/{mode}" for model in MODELS for mode in ("train", "infer", "prefill", "bare")), batch=BATCH, seq=SEQ)


def training(shared, model):
    """devmap's run of the same step."""
    def make():
        job = Job(mode="train", batch=BATCH, seq=SEQ, precision="bf16-true")
        return _ran(shared, model, job, "--steps", str(STEPS))

    return shared.once(("training", model), make)


def forward(shared, model):
    """A forward of the whole batch, with all logits."""
    return shared.once(("forward", model), lambda: _ran(shared, model, Job(batch=BATCH, seq=SEQ, precision="bf16-true"), "--steps", "4"))


def prefill(shared, model):
    """The prompt's part of generation: a cache, and the last position's logits."""
    job = Job(batch=BATCH, seq=SEQ, new_tokens=1, precision="bf16-true")
    return shared.once(("prefill", model), lambda: _ran(shared, model, job, "--new-tokens", "1"))


def _ran(shared, model, job, *flags):
    engine = shared.engine("steps")
    return engine.run(engine.plan(shared.checkpoint(model), job, *shared.topology(1)), *flags)


def arena(shared, figures):
    """The arena beside what PyTorch's allocator held at most."""
    kinds = (
        ("training step", "train", training, ARENA), ("prefill, last logits", "prefill", prefill, PREFILL), ("forward, all logits", "infer", forward, PREFILL),
        ("forward, all logits, PyTorch's without its cache", "bare", forward, None),
    )
    shared.checkpoint(*MODELS)
    for model in MODELS:
        for name, mode, ran, bar in kinds:
            case = f"{model} {BATCH} × {SEQ} bf16, {name}: arena / PyTorch's peak"
            with figures.attempt("arena", case):
                report, theirs = ran(shared, model).report, peers(shared)[f"{model}/{mode}"]["peak_allocated_bytes"]
                ours = sum(device["measured"]["peak_allocated_bytes"] for device in report["devices"])
                note = f"{ours / MIB:.0f} MiB, PyTorch {theirs / MIB:.0f} MiB"
                if bar:
                    figures.within("arena", case, ours / theirs, bar, note)
                else:
                    figures.told("arena", case, f"{ours / theirs:.3g}", note)


def step(shared, figures):
    """Seconds of a warm step; the simulated step beside it."""
    shared.checkpoint(*MODELS)
    for model in MODELS:
        with figures.attempt("step", model):
            report, theirs = training(shared, model).report, peers(shared)[f"{model}/train"]
            ours = warm(report)
            rate = BATCH * SEQ / ours
            note = f"{1e3 * ours:.1f} ms, PyTorch {1e3 * theirs['seconds']:.1f} ms; {rate:.0f} tokens/s, {6 * theirs['parameters'] * rate / 1e12:.0f} TFLOP/s of products"
            figures.reaching("step", f"{model} train {BATCH} × {SEQ} bf16: PyTorch / devmap", theirs["seconds"] / ours, SPEED, note)
            went(figures, model, report, theirs)
            foretold = report["step_seconds"]["predicted"]
            figures.within("step", f"{model}: simulated / measured − 1", abs(foretold / ours - 1), SIMULATED, f"{1e3 * foretold:.1f} ms simulated, {1e3 * ours:.1f} measured")
    for model in () if shared.small else MODELS:
        with figures.attempt("step", f"{model}: kernels"):
            kernels(shared, figures, model, peers(shared)[f"{model}/train"])


def went(figures, model, report, theirs):
    """Milliseconds of a step's parts."""
    last = report["steps"][-1]["devices"][0]
    ours = " ".join(f"{part} {1e3 * last[part + '_seconds']:.1f}" for part in ("forward", "backward", "update", "wait"))
    figures.told("step", f"{model}: where it goes, ms", ours, "PyTorch, each waited for: " + " ".join(f"{part} {spent:.1f}" for part, spent in theirs["parts_ms"].items()))


def sort_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE)), "others")


def shares(rows):
    """Milliseconds of each kind of kernels."""
    out = dict.fromkeys([kind for kind, _ in KINDS] + ["others"], 0.0)
    for spent, _, name in rows:
        out[sort_of(name)] += spent
    return " ".join(f"{kind} {spent:.1f}" for kind, spent in out.items())


def kernels(shared, figures, model, theirs, rows=30):
    """Milliseconds of a step by kernel: ours one by one under ncu, PyTorch's by its profiler."""
    ours = profiled(shared, model)
    figures.told("step", f"{model}: kernels, ms", f"{sum(row[0] for row in ours):.1f}", shares(ours) + f"; {sum(row[1] for row in ours)} launches, one by one under ncu")
    figures.told("step", f"{model}: PyTorch's kernels, ms", f"{theirs['table']['kernels_ms']:.1f}", shares(theirs["table"]["rows"]))
    for side, found in (("devmap", ours), ("PyTorch", theirs["table"]["rows"])):
        for spent, calls, name in found[:rows]:
            print(f"    {side:8} {spent:9.3f} ms {calls:5} × {name[:100]}")


def profiled(shared, model):
    """Milliseconds, launches and name of every kernel of a run of one step, longest first."""
    engine = shared.engine("steps")
    log = engine.place("ncu.csv")
    job = Job(mode="train", batch=BATCH, seq=SEQ, precision="bf16-true")
    made = engine.plan(shared.checkpoint(model), job, *shared.topology(1))
    ncu = ["ncu", "--target-processes", "all", "--clock-control", "none", "--cache-control", "none", "--metrics", "gpu__time_duration.sum", "--csv", "--log-file", log]
    done = subprocess.run([*ncu, shared.binary, "run", made, *engine.backend(made), "--json"], capture_output=True, text=True, check=False, timeout=150)
    if done.returncode or not os.path.exists(log):
        raise RuntimeError(f"ncu: exit status {done.returncode}: {done.stderr[-400:]}")
    found = {}
    with open(log) as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            spent, calls = found.get(row["Kernel Name"], (0.0, 0))
            found[row["Kernel Name"]] = spent + float(row["Metric Value"].replace(",", "")) * {"ns": 1e-6, "us": 1e-3, "ms": 1.0}[row["Metric Unit"].replace("nsecond", "ns").replace("usecond", "us")], calls + 1
    return sorted(((spent, calls, name) for name, (spent, calls) in found.items()), reverse=True)
