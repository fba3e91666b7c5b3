"""Rows of fixtures/measured/how/eight.txt: plans for eight GPUs, measured in the engines that they are for.

Each row is a value, or says why it was not run. On fewer GPUs a model has as many layers for each GPU as on eight, and the
row says so: it tries the same code. The plan is made first, for GPUs of the catalogue; on eight GPUs it must be the committed
prediction (eight_predicted.jsonl). The peers of devmap's engine come last, all by one set of processes.
"""

import glob
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time

import maps
import peers
import pipelines
from engine import Job
from shared import simulated

NAME, OF = "eight", 8
LIMIT, STEPS = 240, 5  # seconds of a row's processes; steps of devmap's engine
PACKAGES = {"trainer": ("accelerate", "peft"), "zero3": ("deepspeed",), "titan": ("torchtitan",), "xdit": ("xfuser", "diffusers"), "map": ("accelerate",), "engine": ()}
TITAN = ("TITAN_TOKENIZER", "TITAN_DATASET")  # a folder, a name of torchtitan's
LEAST = {"hsdp": 4, "titan": 8, "eight-ring": 4}  # GPUs that a runner's degrees need


def eight(shared, figures):
    count = peers.visible(shared) if shared.kind == "cpu" else len(maps.gpus())
    rows = list(read(shared))
    predicted = committed(shared)
    for name, *_ in rows if count < OF else ():
        figures.told(NAME, f"{name}, {OF} GPUs", "not run", f"needs {OF} GPUs")
    if count < OF:
        figures.told(NAME, f"copies of all pairs, {OF} GPUs", "not run", f"needs {OF} GPUs")
    if count < 2:
        return
    count, ran, begun, runner = min(count, OF), [], time.monotonic(), shared.engine(NAME, spread=True)
    for name, bar, words, model, flags in rows:
        case = f"{name}, {count} GPUs"
        if why := lacking(shared, words, count) or ("no time is left" if time.monotonic() - begun > shared.seconds else ""):
            figures.told(NAME, case, "not run", why)
            continue
        with figures.attempt(NAME, case):
            folder, layers = reduced(shared, model, count)
            case += f", {layers}" if layers else ""
            plan = planned(shared, folder, flags, count, runner.place("plan.json"))
            if count == OF and shared.kind != "cpu":
                figures.same(NAME, f"{case}: the plan is the committed prediction", int(digest(plan) == predicted[name]["digest"]), 1, predicted[name]["date"])
            if words[0] == "engine":
                ran.append(engine(shared, figures, runner, case, model, folder, plan))
            else:
                judged(figures, case, plan, RUNNERS[words[0]](shared, words[1:], folder, plan, count), float(bar))
    if shared.kind != "cpu" and (not shared.pieces or "copies" in shared.pieces.split(",")):
        peers.copies(shared, figures)
    pipelines.beside(figures, shared, runner, ran, NAME)
    runner.clear()


def read(shared):
    """Name with model, bar, words of the runner, model, flags."""
    with open(how(shared, "eight.txt")) as file:
        for line in file:
            if not line.startswith("#"):
                name, bar, runner, model, flags = line.strip().split("|")
                if not shared.pieces or {name.split(",")[0], model} & set(shared.pieces.split(",")):
                    yield f"{name}, {model}", bar, runner.split(), model, flags


def how(shared, *names):
    return os.path.join(shared.root, "fixtures", "measured", "how", *names)


def committed(shared):
    with open(os.path.join(shared.root, "fixtures", "measured", "eight_predicted.jsonl")) as file:
        return {row["case"]: row for row in map(json.loads, file)}


def digest(plan):
    with open(plan, "rb") as file:
        return "sha256:" + hashlib.sha256(file.read()).hexdigest()


def lacking(shared, runner, count):
    """Why a row is not run here; empty: nothing is missing."""
    least = max(LEAST.get(word, 2) for word in runner)
    if count < least:
        return f"needs {least} GPUs"
    if shared.kind == "cpu":
        return "" if runner[0] == "engine" else "needs GPUs"
    missing = [package for word in runner for package in PACKAGES.get(word, ()) if importlib.util.find_spec(package) is None]
    if missing:
        return f"package {missing[0]} is missing"
    unset = [name for name in TITAN if runner[0] == "titan" and name not in os.environ]
    return f"{unset[0]} is not set, which the emitted file leaves open" if unset else ""


def reduced(shared, model, count):
    """The model to plan, and how many of its layers are left; all of them on eight GPUs, and of diffusion pipelines."""
    path = os.path.join(shared.models, model)
    if shared.kind == "cpu":
        return shared.tiny(model), "a tiny model"
    if count == OF or not os.path.exists(os.path.join(path, "config.json")):
        return model if count == OF else path, ""
    with open(os.path.join(path, "config.json")) as file:
        fields = json.load(file)
    whole = fields["num_hidden_layers"]
    fields["num_hidden_layers"] = layers = max(count, whole * count // OF)
    path = os.path.join(shared.folder, "reduced", f"{model}@{layers}")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(fields, file)
    return path, f"{layers} of {whole} layers"


def planned(shared, folder, flags, count, plan):
    words = flags.replace("{n}", str(count)).replace("{half}", str(count // 2)).split()
    if shared.kind == "cpu":
        words[words.index("--seq") + 1] = str(shared.seq)
    done = subprocess.run([shared.binary, "plan", folder, "--gpu", "h200-141gb", *words, "-o", plan], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"devmap plan: exit status {done.returncode}: {done.stderr[-800:]}")
    return plan


def judged(figures, case, plan, peaks, bar):
    """Every GPU, in percent off the plan."""
    with open(plan) as file:
        predicted = [device["predicted"]["peak_allocated_bytes"] for device in json.load(file)["devices"]]
    for device, (peak, expected) in enumerate(zip(peaks, predicted, strict=True)):
        figures.within(NAME, f"{case}: GPU {device}, % off the plan", 100 * abs(peak / expected - 1), bar, f"{peak} bytes, {expected} predicted")
    most = max(peaks) * len(peaks) / sum(peaks)
    if case.startswith("map"):
        figures.within(NAME, f"{case}: largest / mean, measured − planned", most - max(predicted) * len(predicted) / sum(predicted), 0.005, f"{most:.4f} measured")


def started(words, count, folder, **env):
    """Runs the processes of a row, and its stdout and stderr on an error."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT, cwd=folder, env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"} | env)
    if done.returncode:
        raise RuntimeError(f"{words[0]} on {count} GPUs: exit status {done.returncode}: {done.stderr[-1500:]}")


def torchrun(count):
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]


def trainer(shared, words, folder, plan, count):
    """transformers' own Trainer (how/measure_trainer.py): the highest step of each rank."""
    kind, case = words
    model, out = os.path.basename(folder), os.path.dirname(plan)
    rows = os.path.join(out, "trainer.jsonl")
    if os.path.exists(rows):
        os.remove(rows)
    started([*torchrun(count), how(shared, "measure_trainer.py"), out, f"{kind}:{model}:{case}:{count}:0"], count, out, MODELS=shared.models)
    with open(rows) as file:
        found = sorted(map(json.loads, file), key=lambda row: row["rank"])
    if errors := [row["error"] for row in found if "error" in row]:
        raise RuntimeError(errors[0])
    return [max(row["prep"], *row["steps"]) for row in found]


def titan(shared, _, __, plan, count):
    """torchtitan's Trainer by the emitted run.sh, watched from outside (how/emitted/titan_sitecustomize.py)."""
    out = plan.removesuffix(".json")
    subprocess.run([shared.binary, "emit", plan, "--for", "torchtitan", "-o", out], capture_output=True, check=True)
    path = os.path.join(out, "devmap_plan.py")
    with open(path) as file:
        text = file.read()
    for name in TITAN:
        text = text.replace(repr(name.split("_")[1]).replace("'", '"'), json.dumps(os.environ[name]))
    with open(path, "w") as file:
        file.write(text)
    os.symlink(how(shared, "emitted", "titan_sitecustomize.py"), os.path.join(out, "sitecustomize.py"))
    paths = ":".join([out, how(shared)])
    started(["sh", os.path.join(out, "run.sh")], count, out, PYTHONPATH=paths, TITAN_CASE="titan", TITAN_OUT=out)
    return [max(row["steps"]) for row in ranked(os.path.join(out, "titan.*.json"), count)]


def xdit(shared, words, _, plan, count):
    """xDiT's runner (how/measure_xdit.py): the highest phase of the second call of each rank."""
    out = os.path.dirname(plan)
    started([*torchrun(count), how(shared, "measure_xdit.py"), words[0], out], count, out)
    phases = ("encode", "denoise", "decode")
    return [max(row["run1"][phase] for phase in phases) for row in ranked(os.path.join(out, words[0] + ".*.json"), count)]


def ranked(pattern, count):
    """What each rank wrote, in order."""
    paths = sorted(glob.glob(pattern), key=lambda path: int(path.split(".")[-2]))
    if len(paths) != count:
        raise RuntimeError(f"{len(paths)} of {count} ranks wrote {os.path.basename(pattern)}")
    rows = []
    for path in paths:
        with open(path) as file:
            rows.append(json.load(file))
    return rows


def mapped(shared, _, __, plan, ___):
    """The program of emit --for torch-check: the plan's map under Accelerate."""
    folder = plan.removesuffix(".json")
    os.makedirs(folder)
    done = subprocess.run([shared.binary, "emit", plan, "--for", "torch-check", "-o", os.path.join(folder, "map.py")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"devmap emit: exit status {done.returncode}: {done.stderr[-800:]}")
    print(shared.python("maps.py", folder), end="", flush=True)
    with open(os.path.join(folder, "map.found.json")) as file:
        return [row["allocated_peak_bytes"] for row in sorted(json.load(file)["measured"], key=lambda row: row["device"])]


RUNNERS = {"trainer": trainer, "titan": titan, "xdit": xdit, "map": mapped}


def engine(shared, figures, runner, case, model, folder, plan):
    """devmap's own pipeline: NVML beside the plan, the step beside the simulation. Returns it for its peer."""
    with open(plan) as file:
        document = json.load(file)
    work = document["workload"]
    job = Job(mode="train", strategy="pipeline", schedule=work["schedule"], batch=work["batch"], micro_batches=work["micro_batches"], seq=work["seq"], recompute=work["recompute"], gpus=work["world"])
    report = runner.run(plan, "--weights", "random", "--steps", str(STEPS)).report
    csv = ""
    if job.schedule not in ("1f1b", "gpipe"):
        runner.call("emit", plan, "--for", "torch-schedule", "-o", csv := runner.place("schedule.csv"))
    run = pipelines.Pipelined(case, model, job, document["stages"], report, runner.simulated(plan), folder, csv)
    peers.held(figures, NAME, case, report)
    simulated(figures, NAME, case, run.simulated["step_seconds"], run.seconds)
    pipelines.went(figures, run, NAME)
    return run
