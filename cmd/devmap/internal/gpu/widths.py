"""widths.py DEVMAP BACKEND MODELS SEED FOLDER MODEL: one real width, with two layers and a part of its vocabulary, beside
PyTorch on the same GPU.

Prints JSON lists [section, case, figure, bar, note], a line each. A process of its own, so that what PyTorch holds of
the GPU goes with it.
"""

import json
import os
import shutil
import sys

from shared import OnGPU

import torch

import models
import outputs
from accuracy import ATTENTION, ROUNDED, split, whole
from engine import Job
from safetensors.torch import load_file

LAYERS, VOCABULARY, BATCH, SEQ = 2, 16016, 2, 320
EXACT, EXACT_GRADIENTS = 1e-5, 1e-4


def fields_of(configs, name):
    found = next(fields for of, _, fields in outputs.REAL if of == name)
    if not found:
        with open(os.path.join(configs, name, "config.json")) as file:
            found = json.load(file)
    found = found | {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None} | {outputs.LAYERS.get(found["model_type"], "num_hidden_layers"): LAYERS}
    found.pop("layer_types", None)
    return found


def reference(folder, dtype, place, fused):
    """Transformers' model as a judge: eager attention; as a peer: sdpa, where the family has no cap that it leaves out."""
    model = models.loaded(folder, dtype)
    model.set_attn_implementation("sdpa" if fused else "eager")
    return model.to(place)


def told(section, case, figure, bar, note=""):
    print(json.dumps([section, case, figure, bar, note]), flush=True)


def logits(engine, folder, name, place, ids, fused):
    with torch.no_grad():
        asked = torch.as_tensor(ids, device=place)
        exact = reference(folder, torch.float32, place, False)(input_ids=asked).logits
        own = models.distance(reference(folder, torch.bfloat16, place, fused)(input_ids=asked).logits, exact)
    for precision, bar in (("32-true", EXACT), ("bf16-true", ROUNDED)):
        ran = engine.planned(folder, Job(batch=BATCH, seq=SEQ, precision=precision), dumps=("logits",), tokens=ids)
        ours = models.distance(models.dumped(ran, "logits").to(place), exact)
        if precision == "32-true":
            told("widths", f"{name} logits, fp32", ours, bar)
        else:
            told("widths", f"{name} logits, bf16 / PyTorch's bf16", ours / own, bar, f"PyTorch's bf16 is {own:.1e} from fp32")
        os.remove(ran.files["logits"])


def gradients(engine, folder, name, place, ids, fused):
    asked = torch.as_tensor(ids, device=place)

    def theirs(dtype, fused):
        model = reference(folder, dtype, place, fused)
        model(input_ids=asked, labels=asked, use_cache=False).loss.backward()
        return {of: weight.grad for of, weight in model.named_parameters()}

    exact, own = theirs(torch.float32, False), theirs(torch.bfloat16, fused)
    for precision in ("32-true", "bf16-true"):
        ran = engine.planned(folder, Job(mode="train", batch=BATCH, seq=SEQ, precision=precision), dumps=("grads",), tokens=ids)
        ours = load_file(ran.files["grads"], device=str(place))
        os.remove(ran.files["grads"])
        if precision == "32-true":
            told("widths", f"{name} gradients, fp32", whole(ours, exact), EXACT_GRADIENTS)
            continue
        for kind, times in (("attention", ATTENTION), ("others", ROUNDED)):
            apart = whole(split(own)[kind], split(exact)[kind])
            told("widths", f"{name} gradients of {kind}, bf16 / PyTorch's bf16", whole(split(ours)[kind], split(exact)[kind]) / apart, times, f"PyTorch's bf16 is {apart:.1e} from fp32")


def main():
    devmap, backend, configs, seed, folder, name = sys.argv[1:]
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    fields = fields_of(configs, name)
    if backend == "cpu":  # the scripts are tried
        fields |= {width: 128 for width in ("hidden_size", "intermediate_size", "n_embd") if width in fields} | {"vocab_size": 500}
    engine = OnGPU(devmap, folder, backend)
    made = engine.place(name)
    models.saved(models.config_of(fields), int(seed), made, "bf16-true")
    ids = models.drawn_ids(int(seed), BATCH, SEQ, fields["vocab_size"])
    fused = not fields.get("attn_logit_softcapping")
    logits(engine, made, name, place, ids, fused)
    if fields["model_type"] != "bert":
        gradients(engine, made, name, place, ids, fused)
    failed = [why for why in engine.verdicts if why]
    told("widths", f"{name}: verdicts that fail", len(failed), 0, "; ".join(failed[:2]))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
