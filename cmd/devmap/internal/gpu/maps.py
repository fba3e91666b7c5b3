"""Plans measured on PyTorch by the files that `devmap emit --for torch-check` writes: devmap's own maps under Accelerate
on several GPUs, with Accelerate's own map of some models beside them; plans of several families on one GPU.

usage: maps.py FOLDER: runs every check of the folder, in processes that share one import of torch, and writes what each found
"""

import glob
import json
import os
import shutil
import subprocess
import sys

OFF, BALANCE = 0.2, 1.02
# By GPUs: batch, tokens, what is recomputed; GiB that the fullest is to have, where it is not held to the mean; whether
# Accelerate's own map is measured too.
CASES = {
    2: {
        "phi-4": (2, 2048, "none", None, True), "qwen3-8b": (4, 2048, "none", None, False), "llama-3.2-3b": (4, 2048, "none", None, True),
        "gemma-2-9b": (2, 2048, "none", None, False), "llama-3.1-8b": (8, 4096, "full", None, False),
    },
    4: {"qwen2.5-3b": (4, 2048, "none", 18.3, False), "llama-3.1-8b": (4, 2048, "none", 28.5, False)},
}
# On one GPU: flags of plan; of processes one rank.
FAMILIES = {
    ("phi-3-mini", "trained"): ("--gpus 1 --mode train --batch 2 --seq 2048", None),
    ("qwen3-8b", "prefill"): ("--gpus 1 --mode infer --batch 4 --seq 4096", None),
    ("gemma-2-9b", "FSDP2, rank 3 of 8"): ("--gpus 8 --mode train --strategy fsdp --preset accelerate-loop --precision bf16-mixed --batch 1 --seq 2048", 3),
    ("llama-3.1-8b", "1F1B, rank 1 of 4"): ("--gpus 4 --mode train --strategy pipeline --batch 8 --micro-batches 8 --seq 2048", 1),
}
CATALOGUE = {"NVIDIA H200": "h200-141gb", "NVIDIA H100 80GB HBM3": "h100-80gb"}  # whose budgets plans are made for


def gpus():
    """Names of the GPUs that CUDA shows."""
    if not shutil.which("nvidia-smi"):
        return []
    said = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=False).stdout
    names = [name.strip() for name in said.split("\n") if name.strip()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return names[:len(visible.split(","))] if visible else names


def lacking(figures, section, what, count):
    """Says what is not run where there are too few GPUs, or none whose budget is known."""
    names = gpus()
    if len(names) >= count and names[0] in CATALOGUE:
        return False
    figures.told(section, what, "not run", f"needs {count} GPUs" if len(names) < count else f"{names[0]} is none of {', '.join(CATALOGUE)}")
    return True


def maps(shared, figures):
    """devmap's own maps on several GPUs, trained under Accelerate."""
    if lacking(figures, "maps", "devmap's own maps in Accelerate", min(CASES)):
        return
    count = max(number for number in CASES if number <= len(gpus()))
    folder = os.path.join(shared.folder, "maps")
    os.makedirs(folder)
    cases = dict(list(CASES[count].items())[: 2 if shared.small else None])
    for model, (batch, seq, recompute, _, own) in cases.items():
        flags = f"--gpus {count} --mode train --batch {batch} --seq {seq} --recompute {recompute} --preset accelerate-loop"
        emitted(shared, model, flags, os.path.join(folder, model + (".own.py" if own else ".py")))
    for line in shared.streamed("maps.py", folder):
        print(line, end="", flush=True)
    for model, (batch, seq, recompute, room, own) in cases.items():
        case = f"{model} {batch} × {seq} on {count} GPUs" + (", recomputed" if recompute == "full" else "")
        with figures.attempt("maps", case):
            evenly(figures, case, within(figures, "maps", case, os.path.join(folder, model + ".found.json"), OFF)["measured"], room)
        if own:
            with figures.attempt("maps", case + ", Accelerate's own map"), open(os.path.join(folder, model + ".own.json")) as file:
                theirs = json.load(file)
                figures.told("maps", case + ": largest peak / mean of Accelerate's own map", f"{balance(theirs):.3f}", peaks(theirs))


def evenly(figures, case, rows, room):
    """The largest peak beside the mean, or beside what it is to have room in."""
    if room is None:
        figures.within("maps", case + ": largest peak / mean", balance(rows), BALANCE, peaks(rows))
        return
    most = max(row["allocated_peak_bytes"] for row in rows) / 2**30
    figures.within("maps", case + ": the fullest GPU, GiB", most, room, f"{peaks(rows)}; largest / mean {balance(rows):.4f}")


def peaks(rows):
    return " ".join(f"{row['allocated_peak_bytes'] / 2**30:.2f}" for row in rows) + " GiB"


def families(shared, figures, section="watch"):
    """Plans of several families and engines on one GPU, within the bound that the program itself names."""
    if lacking(figures, section, "torch-check of three families", 1):
        return
    folder = os.path.join(shared.folder, "families")
    os.makedirs(folder)
    for number, ((model, _), (flags, rank)) in enumerate(FAMILIES.items()):
        emitted(shared, model, flags, os.path.join(folder, f"{number}{f'.rank{rank}' if rank is not None else ''}.py"))
    print(shared.python("maps.py", folder), end="", flush=True)
    for number, ((model, what), (_, rank)) in enumerate(FAMILIES.items()):
        with figures.attempt(section, f"torch-check: {model} {what}"):
            within(figures, section, f"torch-check: {model} {what}", os.path.join(folder, f"{number}{f'.rank{rank}' if rank is not None else ''}.found.json"))


def emitted(shared, model, flags, check):
    """The check of a plan."""
    plan = check.removesuffix(".py") + ".plan.json"
    for words in (["plan", shared.config(model), "--gpu", CATALOGUE[gpus()[0]], *flags.split(), "-o", plan], ["emit", plan, "--for", "torch-check", "-o", check]):
        done = subprocess.run([shared.binary, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"devmap {words[0]}: exit status {done.returncode}: {done.stderr[-800:]}")


def within(figures, section, case, path, bar=None):
    """Every GPU that was measured, in percent off what was predicted."""
    with open(path) as file:
        found = json.load(file)
    for row in found["measured"]:
        low, high = found["predicted"][row["device"]]["peak_range_bytes"]
        predicted = f"{low / 2**30:.3f}" + (f" to {high / 2**30:.3f}" if high > low else "")
        note = f"predicted {predicted} GiB, measured {row['allocated_peak_bytes'] / 2**30:.3f}; reserved {row['reserved_peak_bytes'] / 2**30:.2f}, NVML {(row['nvml_bytes'] or 0) / 2**30:.2f}"
        figures.within(section, f"{case}: GPU {row['device']}, % off the prediction", 100 * abs(row["off"]), bar or 100 * found["bound"], note)
    return found


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
        rank = ["--rank", name.rsplit(".rank", 1)[1]] if ".rank" in name else []
        forked(lambda: carried_out(path, *rank, "--json", name + ".found.json"))
        if path.endswith(".own.py"):
            forked(lambda: balanced(path, name + ".own.json"))


if __name__ == "__main__":
    main(sys.argv[1])
