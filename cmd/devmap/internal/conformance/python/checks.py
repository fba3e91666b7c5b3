"""The programs that `devmap emit --for torch-check` writes run: of every family and way to spread it, on the CPU, where
nothing is measured. Each builds its model of the config that is in it, and counts its parameters.

usage: checks.py FOLDER FLAG...: runs every program of the folder with these flags, in processes that share one import
"""

import contextlib
import glob
import json
import os
import random
import subprocess
import sys
import time

WAYS = {
    "device-map": ["--gpus", "3", "--mode", "train", "--batch", "4", "--micro-batches", "2"],
    "autocast, recomputed": ["--gpus", "2", "--mode", "train", "--batch", "2", "--precision", "bf16-mixed", "--recompute", "full"],
    "SGD": ["--gpus", "1", "--mode", "train", "--optimizer", "sgd-momentum", "--precision", "32-true"],
    "forward": ["--gpus", "2", "--mode", "infer", "--precision", "bf16-true"],
    "generation": ["--gpus", "2", "--mode", "infer", "--new-tokens", "3", "--precision", "32-true"],
    "fsdp": ["--gpus", "2", "--mode", "train", "--strategy", "fsdp", "--preset", "accelerate-loop", "--precision", "bf16-mixed"],
    "hsdp": ["--gpus", "4", "--mode", "train", "--strategy", "hsdp", "--preset", "accelerate-loop", "--precision", "bf16-true", "--recompute", "full"],
    "1f1b": ["--gpus", "2", "--mode", "train", "--strategy", "pipeline", "--batch", "4", "--micro-batches", "4", "--precision", "bf16-true"],
    "interleaved": ["--gpus", "2", "--mode", "train", "--strategy", "pipeline", "--schedule", "interleaved", "--batch", "4", "--micro-batches", "2", "--precision", "32-true"],
}
STAGED = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2")
ONE_RANK = ("fsdp", "hsdp", "1f1b", "interleaved")


def checks(bench):
    import draw

    named = {}
    for family in bench.among(draw.TRAINED):
        for way, flags in WAYS.items():
            if way in ("1f1b", "interleaved") and family not in STAGED:
                continue
            rng = random.Random(f"{bench.seed}/checks/{family}/{way}")
            fields = draw.drawn(family, rng, 16)
            fields["n_layer" if family == "gpt2" else "num_hidden_layers"] = 4
            if "layer_types" in fields:
                fields["layer_types"] = draw.layer_types(rng, 4)
            with bench.figures.attempt("checks", f"{family} {way}"):
                path = emitted(bench.engine, fields, flags)
                named[path] = f"{family} {way}"
    folder = bench.engine.place("checks")
    os.makedirs(folder)
    for path, name in named.items():
        for rank in (0, 1) if name.split(" ", 1)[1] in ONE_RANK else (None,):
            end = f".rank{rank}" if rank is not None else ""
            os.link(path, os.path.join(folder, f"{name.replace(' ', '_')}{end}.py"))
    done = subprocess.run([sys.executable, __file__, folder, "--device", "cpu", "--steps", "2"], capture_output=True, text=True, check=False)
    ran = [line for line in done.stdout.splitlines() if line.startswith("status ")]
    failed = [line for line in ran if not line.startswith("status 0 ")]
    count = len(glob.glob(folder + "/*.py"))
    why = "; ".join(failed[:4]) or ("" if len(ran) == count else done.stderr[-400:])
    bench.figures.same("checks", "programs of emit --for torch-check that run through", len(ran) - len(failed), count, why)


def emitted(engine, fields, flags):
    """The program of a drawn model's plan."""
    folder = engine.place("model")
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(fields, file)
    plan, path = engine.place("plan.json"), engine.place("check.py")
    engine.call("plan", folder, "--gpu", "h200-141gb", "--seq", "12", *flags, "-o", plan)
    engine.call("emit", plan, "--for", "torch-check", "-o", path)
    return path


def forked(call):
    """Carries a call out in a process of its own, and returns its exit status."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        call()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
        if not isinstance(end.code, int):
            print(end.code)
    except BaseException as err:  # noqa: BLE001 (a process that was forked is not to go on)
        print(f"{type(err).__name__}: {str(err)[-800:]}")
    finally:
        sys.stdout.flush()
        os._exit(status)


def carried_out(path, *flags):
    """A program as its user runs it."""
    sys.argv = [path, *flags]
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), {"__name__": "__main__", "__doc__": ""})


def imported():
    """Imports what programs need; whether there is a GPU is not asked of CUDA, which would be spoilt for what is forked."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import accelerate
    import torch
    import transformers

    return torch, transformers, accelerate


def main(folder, *flags):
    torch, transformers, _ = imported()
    assert transformers.AutoModelForCausalLM  # what is imported late
    torch.set_num_threads(1)
    for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
        rank = [word.removeprefix("rank") for word in path.split(".") if word.startswith("rank")]
        begun = time.monotonic()
        status = forked(lambda: carried_out(path, *flags, *(["--rank", *rank] if rank else [])))
        print(f"status {status} {os.path.basename(path)} {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
