"""A training step beside PyTorch's own, in time and in memory; and where the time goes."""

import glob
import os
import re
import subprocess
import sys

from engine import Job
from shared import HERE, MIB, parts_of, simulated, warm

MODELS = ("llama-3.2-1b", "qwen2.5-3b")
LARGE = "llama-3.1-8b"  # of part step alone
BATCH, STEPS = 4, 12
ARENA, PREFILL, SPEED, COMPILED = 0.70, 1.02, 1.0, 1.15
KINDS = (
    ("attention", r"flash|fmha|attention|sdpa|cudnn"), ("products", r"gemm|cutlass|nvjet|xmma|split_?k|matmul|cublas"),
    ("update", r"adam|multi_tensor|square"), ("loss", r"softmax|nll|cross_entropy|loss|log"),
)


def peers(shared, modes=("train",)):
    """PyTorch's side, of both models."""
    return shared.peer(*(f"{model}/{mode}" for model in MODELS for mode in modes), batch=BATCH, seq=shared.seq)


def batch(model):
    return BATCH // 2 if model == LARGE else BATCH


def peer(shared, case):
    """PyTorch's side of one case of a model."""
    return shared.peer(case, batch=batch(case.split("/")[0]), seq=shared.seq)[case]


def training(shared, model):
    """devmap's run of the same step."""
    def make():
        job = Job(mode="train", batch=batch(model), seq=shared.seq, precision="bf16-true")
        return _ran(shared, model, job, "--steps", str(STEPS))

    return shared.once(("training", model), make)


def forward(shared, model):
    """A forward of the whole batch, with all logits."""
    return shared.once(("forward", model), lambda: _ran(shared, model, Job(batch=BATCH, seq=shared.seq, precision="bf16-true"), "--steps", "4"))


def prefill(shared, model):
    """The prompt's part of generation: a cache, and the last position's logits."""
    job = Job(batch=BATCH, seq=shared.seq, new_tokens=1, precision="bf16-true")
    return shared.once(("prefill", model), lambda: _ran(shared, model, job, "--new-tokens", "1"))


def _ran(shared, model, job, *flags):
    engine = shared.engine("steps")
    return engine.run(engine.plan(shared.config(model), job, *shared.topology(1)), "--weights", "random", *flags)


def arena(shared, figures):
    """The arena beside what PyTorch's allocator held at most."""
    kinds = (
        ("training step", "train", training, ARENA), ("prefill, last logits", "prefill", prefill, PREFILL), ("forward, all logits", "infer", forward, PREFILL),
    )
    for model in MODELS:
        for name, mode, ran, bar in kinds:
            case = f"{model} {BATCH} × {shared.seq} bf16, {name}: arena / PyTorch's peak"
            with figures.attempt("arena", case):
                report, theirs = ran(shared, model).report, peers(shared, [kind[1] for kind in kinds])[f"{model}/{mode}"]["peak_allocated_bytes"]
                ours = sum(device["measured"]["peak_allocated_bytes"] for device in report["devices"])
                figures.within("arena", case, ours / theirs, bar, f"{ours / MIB:.0f} MiB, PyTorch {theirs / MIB:.0f} MiB")


def step(shared, figures):
    """Seconds of a warm step; the simulated step beside it."""
    models = [model for model in (*MODELS, LARGE) if not shared.pieces or model in shared.pieces.split(",")]
    for model in models:
        with figures.attempt("step", model):
            report, theirs = training(shared, model).report, peer(shared, f"{model}/train")
            ours = warm(report)
            rate = batch(model) * shared.seq / ours
            note = f"{1e3 * ours:.1f} ms, PyTorch {1e3 * theirs['seconds']:.1f} ms; {rate:.0f} tokens/s, {6 * theirs['parameters'] * rate / 1e12:.0f} TFLOP/s of products"
            figures.reaching("step", f"{model} train {batch(model)} × {shared.seq} bf16: PyTorch / devmap", theirs["seconds"] / ours, SPEED, note)
            if not shared.small and shared.kind != "cpu":
                compiled = peer(shared, f"{model}/train/compile")
                note = f"{1e3 * ours:.1f} ms, compiled {1e3 * compiled['seconds']:.1f} ms; {compiled['peak_allocated_bytes'] / MIB:.0f} MiB"
                figures.reaching("step", f"{model}: torch.compile / devmap", compiled["seconds"] / ours, COMPILED, note)
            went(figures, model, report, theirs)
            simulated(figures, "step", model, report["step_seconds"]["predicted"], ours)
    for model in () if shared.small or shared.kind == "cpu" else models:
        with figures.attempt("step", f"{model}: kernels"):
            kernels(shared, figures, model, peer(shared, f"{model}/train"))


def went(figures, model, report, theirs):
    """Milliseconds of a step's parts."""
    figures.told("step", f"{model}: where it goes, ms", parts_of(report["steps"][-1]["devices"][0]), "PyTorch, each waited for: " + " ".join(f"{part} {spent:.1f}" for part, spent in theirs["parts_ms"].items()))


def sort_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE)), "others")


def shares(rows):
    """Milliseconds of each kind of kernels."""
    out = dict.fromkeys([kind for kind, _ in KINDS] + ["others"], 0.0)
    for spent, _, name in rows:
        out[sort_of(name)] += spent
    return " ".join(f"{kind} {spent:.1f}" for kind, spent in out.items())


def kernels(shared, figures, model, theirs, rows=30):
    """Milliseconds of a step by kernel, both sides by CUPTI while the step runs as it does."""
    ours, took = traced(shared, model)
    own, other = sum(row[0] for row in ours), theirs["table"]["kernels_ms"]
    figures.told("step", f"{model}: kernels, ms", f"{own:.1f}", f"{shares(ours)}; {sum(row[1] for row in ours)} launches in {took:.1f} ms, of which {max(0.0, took - own):.1f} between kernels")
    figures.told("step", f"{model}: PyTorch's kernels, ms", f"{other:.1f}", f"{shares(theirs['table']['rows'])}; {sum(row[1] for row in theirs['table']['rows'])} launches")
    for side, found in (("devmap", ours), ("PyTorch", theirs["table"]["rows"])):
        for spent, calls, name in found[:rows]:
            print(f"    {side:8} {spent:9.3f} ms {calls:5} × {name[:100]}")


MARK = "sort"  # runs once, at the beginning of a step: token ids by their order, for the table's gradient


def traced(shared, model, step=3):
    """Milliseconds, launches and name of every kernel of one warm step, longest first; and how long the step was."""
    engine = shared.engine("steps")
    job = Job(mode="train", batch=batch(model), seq=shared.seq, precision="bf16-true")
    made, lines = engine.plan(shared.config(model), job, *shared.topology(1)), engine.place("trace")
    environment = os.environ | {"CUDA_INJECTION64_PATH": shared.once("trace", lambda: library(engine)), "DEVMAP_TRACE": lines}
    done = subprocess.run([shared.binary, "run", made, *engine.backend(made), "--weights", "random", "--steps", "6", "--json"], capture_output=True, text=True, check=False, timeout=90, env=environment)
    if done.returncode not in (0, 4):
        raise RuntimeError(f"devmap run, traced: exit status {done.returncode}: {done.stderr[-400:]}")
    with open(lines) as file:
        launches = sorted((int(begin), int(end), name) for begin, end, name in (line.rstrip("\n").split("\t", 2) for line in file))
    marks = [begin for begin, _, name in launches if name == MARK]
    if len(marks) < step + 2:
        raise RuntimeError(f"{len(launches)} kernels were traced, {len(marks)} of them {MARK}; {[name for _, end, name in launches if not end]} {done.stderr[-300:]}")
    first, last = marks[-3], marks[-2]
    found = {}
    for begin, end, name in launches:
        if first <= begin < last:
            spent, calls = found.get(name, (0.0, 0))
            found[name] = spent + (end - begin) / 1e6, calls + 1
    return sorted(((spent, calls, name) for name, (spent, calls) in found.items()), reverse=True), (last - first) / 1e6


def library(engine):
    """trace.c, compiled with what this machine has of CUPTI: the toolkit's, or that of PyTorch's or Triton's packages."""
    packages = [path for path in sys.path if path.endswith("-packages")]
    places = [("/usr/local/cuda/extras/CUPTI/include", "/usr/local/cuda/extras/CUPTI/lib64"), ("/usr/local/cuda/include", "/usr/local/cuda/lib64")]
    places += [(os.path.join(path, "triton/backends/nvidia/include"), os.path.join(path, "triton/backends/nvidia/lib/cupti")) for path in packages]
    places += [(os.path.join(path, "nvidia/cu13/include"), os.path.join(path, "nvidia/cu13/lib")) for path in packages]
    out, said = engine.place("trace.so"), ["no CUPTI is found"]
    for include, folder in places:
        headers, libraries = glob.glob(os.path.join(include, "cupti_activity*.h")), sorted(glob.glob(os.path.join(folder, "libcupti.so*")))
        if headers and libraries:
            text = "".join(open(path).read() for path in headers)
            newest = [f"-D{name}={kind}{max(int(number) for number in re.findall(kind + pattern, text))}" for name, kind, pattern in
                      (("KERNEL", "CUpti_ActivityKernel", r"(\d+);"), ("COPY", "CUpti_ActivityMemcpy", r"([3-9]|\d\d+);"))]  # Memcpy2 is of other copies
            words = ["cc", "-O2", "-shared", "-fPIC", *newest, "-I", include, "-I", "/usr/local/cuda/include", "-o", out,
                     os.path.join(HERE, "trace.c"), libraries[0], "-Wl,-rpath," + folder]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if not done.returncode:
                return out
            said.append(done.stderr[-300:])
    raise RuntimeError("; ".join(said))
