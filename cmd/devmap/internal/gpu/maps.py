"""devmap's own maps under Accelerate: what each of two GPUs holds beside the prediction, by the file that
`devmap emit --for torch-check` writes; Accelerate's own map of some of the models beside them.

usage: maps.py FOLDER: runs every check of the folder, in processes that share one import of torch, and writes what each found
"""

import glob
import json
import os
import shutil
import subprocess
import sys

GPUS, OFF, BALANCE = 2, 0.2, 1.02
# Batch, tokens, what is recomputed; whether Accelerate's own map is measured too.
MODELS = {
    "phi-4": (2, 2048, "none", True), "qwen3-8b": (4, 2048, "none", False), "llama-3.2-3b": (4, 2048, "none", True),
    "gemma-2-9b": (2, 2048, "none", False), "llama-3.1-8b": (8, 4096, "full", False),
}
CATALOGUE = {"NVIDIA H200": "h200-141gb", "NVIDIA H100 80GB HBM3": "h100-80gb"}  # whose budgets the maps are balanced for


def maps(shared, figures):
    said = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=False).stdout.split("\n") if shutil.which("nvidia-smi") else []
    names = [name.strip() for name in said if name.strip()]
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        names = names[:len(visible.split(","))]
    if len(names) < GPUS or names[0] not in CATALOGUE:
        figures.told("maps", "devmap's own maps in Accelerate", "not run", f"needs {GPUS} GPUs of {' or '.join(CATALOGUE)}")
        return
    folder = os.path.join(shared.folder, "maps")
    os.makedirs(folder)
    models = list(MODELS)[:2] if shared.small else MODELS
    for model in models:
        emitted(shared, folder, model, CATALOGUE[names[0]])
    print(shared.python("maps.py", folder), end="", flush=True)
    for model in models:
        with figures.attempt("maps", model):
            beside(figures, folder, model)


def emitted(shared, folder, model, gpu):
    """The check of a model's map."""
    batch, seq, recompute, own = MODELS[model]
    plan, check = os.path.join(folder, model + ".json"), os.path.join(folder, f"{model}{'.own' if own else ''}.py")
    flags = ["--gpus", str(GPUS), "--gpu", gpu, "--mode", "train", "--batch", str(batch), "--seq", str(seq), "--recompute", recompute]
    for words in (["plan", shared.config(model), *flags, "-o", plan], ["emit", plan, "--for", "torch-check", "-o", check]):
        done = subprocess.run([shared.binary, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"devmap {words[0]}: exit status {done.returncode}: {done.stderr[-800:]}")


def beside(figures, folder, model):
    batch, seq, recompute, own = MODELS[model]
    case = f"{model} {batch} × {seq}" + (", recomputed" if recompute == "full" else "")
    with open(os.path.join(folder, model + ".found.json")) as file:
        found = json.load(file)
    for row, told in zip(found["measured"], found["predicted"]):
        note = f"predicted {told['peak_allocated_bytes'] / 2**30:.3f} GiB, measured {row['allocated_peak_bytes'] / 2**30:.3f}; reserved {row['reserved_peak_bytes'] / 2**30:.2f}"
        figures.within("maps", f"{case}: GPU {row['device']}, % off the prediction", 100 * abs(row["off"]), OFF, note)
    figures.within("maps", case + ": largest peak / mean", balance(found["measured"]), BALANCE)
    if own:
        with open(os.path.join(folder, model + ".own.json")) as file:
            theirs = json.load(file)
        peaks = " ".join(f"{row['allocated_peak_bytes'] / 2**30:.2f}" for row in theirs)
        figures.told("maps", case + ": largest peak / mean of Accelerate's own map", f"{balance(theirs):.3f}", peaks + " GiB")


def balance(rows):
    peaks = [row["allocated_peak_bytes"] for row in rows]
    return max(peaks) * len(peaks) / sum(peaks)


# What runs the checks.


def balanced(path, out):
    """The same with the map that Accelerate makes for device_map="balanced"."""
    import accelerate
    import torch

    names = {"__name__": "check", "__doc__": ""}
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), names)
    sys.argv = [path]
    model = names["built"]()
    whole = list(model._no_split_modules)
    room = accelerate.utils.get_balanced_memory(model, no_split_module_classes=whole, dtype=torch.bfloat16)
    names["JOB"]["device_map"] = dict(accelerate.infer_auto_device_map(model, max_memory=room, no_split_module_classes=whole, dtype=torch.bfloat16))
    with open(out, "w") as file:
        json.dump(names["run"](names["asked"]()), file)


def main(folder):
    sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance", "python")]
    from checks import carried_out, forked, imported

    _, transformers, _ = imported()
    assert transformers.AutoModelForCausalLM  # what is imported late
    for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
        name = path.removesuffix(".py").removesuffix(".own")
        forked(lambda: carried_out(path, "--json", name + ".found.json"))
        if path.endswith(".own.py"):
            forked(lambda: balanced(path, name + ".own.json"))


if __name__ == "__main__":
    main(sys.argv[1])
