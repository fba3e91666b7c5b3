"""What must be equal bit for bit: however the model is spread, in whichever order, after a resume; and tokens."""

import filecmp
import os
import random

import torch

import draw
import models
from engine import Failed, Job

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true")
LAYERS = 6


def deep(bench, family, precision):
    """A model of enough layers for four devices of two stages each."""
    rng = random.Random(f"{bench.seed}/same/{family}/{precision}")
    seq = rng.randrange(8, 24)
    fields = draw.drawn(family, rng, seq)
    fields["n_layer" if family == "gpt2" else "num_hidden_layers"] = LAYERS
    if "layer_types" in fields:
        fields["layer_types"] = draw.layer_types(rng, LAYERS)
    fields["n_positions" if family == "gpt2" else "max_position_embeddings"] = 4 * seq
    folder = bench.engine.place(family)
    model = models.saved(models.config_of(fields), rng.randrange(1 << 30), folder, precision)
    return folder, model, models.drawn_ids(rng.randrange(1 << 30), 8, seq, fields["vocab_size"])


def ways(mode):
    """Every way to spread a model and to order its micro-batches; the first is what the others are held to."""
    yield {}
    for recompute in ("none", "full") if mode == "train" else ("",):
        for gpus in (1, 2, 3):
            yield {"gpus": gpus, "recompute": recompute}
        for gpus in (2, 3, 4):
            for schedule in ("gpipe", "1f1b", "interleaved"):
                if schedule != "interleaved" or gpus != 3:  # micro-batches are a multiple of the devices
                    yield {"gpus": gpus, "strategy": "pipeline", "schedule": schedule, "recompute": recompute}


def devices(bench):
    """Dumped files byte for byte, losses, what is saved after three steps."""
    for family in bench.among(draw.FAMILIES):
        precision = PRECISIONS[draw.FAMILIES.index(family) % len(PRECISIONS)]
        for mode in ("infer", "train") if family in draw.TRAINED else ("infer",):
            use = precision if mode == "train" else precision.replace("mixed", "true")
            with bench.figures.attempt("devices", f"{family} {mode} {use}"):
                folder, _, ids = deep(bench, family, use)
                every(bench, family, mode, use, folder, ids)
            bench.clear()


def every(bench, family, mode, precision, folder, ids):
    base = Job(mode=mode, batch=4, seq=ids.shape[1], precision=precision, micro_batches=4)
    kinds = ("logits", "hidden") + (("grads",) if mode == "train" else ())
    first, equal, count, odd = None, 0, 0, []
    for over in ways(mode):
        job = Job(**{**base.__dict__, **over})
        flags = ["--steps", "3", "--save", bench.engine.place("saved")] if mode == "train" else []
        try:
            ran = bench.engine.planned(folder, job, *flags, dumps=kinds, tokens=ids)
        except Failed as err:
            odd.append(f"{job}: {str(err).strip().splitlines()[-1]}")
            count += 1
            continue
        files = {**ran.files, **({"saved": os.path.join(flags[-1], "model.safetensors")} if flags else {})}
        if first is None:
            first = files, ran.losses if flags else None
            continue
        differ = [kind for kind in files if not filecmp.cmp(files[kind], first[0][kind], shallow=False)]
        differ += ["losses"] if flags and ran.losses != first[1] else []
        count, equal = count + 1, equal + (not differ)
        odd += [f"{job}: {', '.join(differ)}"] if differ else []
    bench.figures.same("devices", f"{family} {mode} {precision}", equal, count, "; ".join(odd[:4]))


def resume(bench):
    """Ten steps, and five and five more with another number of devices between: what is saved is the same file."""
    for family in bench.among(draw.TRAINED):
        number = draw.TRAINED.index(family)
        precision = PRECISIONS[number % len(PRECISIONS)]
        with bench.figures.attempt("resume", f"{family} {precision}"):
            folder, _, ids = deep(bench, family, precision)
            base = {"mode": "train", "batch": 4, "seq": ids.shape[1], "precision": precision, "micro_batches": 2, "optimizer": ("adamw", "sgd")[number % 2]}
            whole, ended, state = bench.engine.place("whole"), bench.engine.place("ended"), bench.engine.place("state")
            one = bench.engine.plan(folder, Job(**base))
            two = bench.engine.plan(folder, Job(**base, gpus=2, strategy="pipeline"))
            flags = ("--clip", "0.5")
            unbroken = bench.engine.run(one, "--steps", "10", "--save", whole, *flags, tokens=ids)
            first = bench.engine.run(one, "--steps", "5", "--save-state", state, *flags, tokens=ids)
            second = bench.engine.run(two, "--steps", "5", "--resume", state, "--save", ended, *flags, tokens=ids)
            names = sorted({*os.listdir(whole), *os.listdir(ended)})
            equal = sum(os.path.exists(os.path.join(ended, name)) and filecmp.cmp(os.path.join(whole, name), os.path.join(ended, name), shallow=False) for name in names)
            bench.figures.same("resume", f"{family} {precision}: files", equal, len(names), ", ".join(names))
            bench.figures.same("resume", f"{family} {precision}: losses", sum(a == b for a, b in zip(unbroken.losses, first.losses + second.losses)), 10)
        bench.clear()


TIE = 1e-5
NEW = 12


def decode(bench):
    """Greedy tokens of drawn models on one to four devices: each is the largest logit of Transformers' forward over
    what stands before it (or as large, within fp32), and the prompt's last logits are those."""
    for family in bench.among(draw.TRAINED):
        with bench.figures.attempt("decode", family):
            folder, model, ids = deep(bench, family, "32-true")
            prompt = ids[:3, : ids.shape[1] // 2]
            runs = []
            for gpus in (1, 2, 4):
                job = Job(gpus=gpus, strategy="pipeline" if gpus > 1 else "device-map", batch=len(prompt), seq=prompt.shape[1], new_tokens=NEW, precision="32-true")
                runs.append(bench.engine.planned(folder, job, "--new-tokens", str(NEW), dumps=("logits",), tokens=prompt))
            tokens = runs[0].report["tokens"]
            bench.figures.same("decode", f"{family}: on 2 and 4 devices as on 1", sum(ran.report["tokens"] == tokens for ran in runs[1:]), 2)
            sequence = torch.cat([torch.as_tensor(prompt), torch.as_tensor(tokens)], dim=1)
            theirs = models.forward(model, sequence)[0][:, prompt.shape[1] - 1 : -1]
            chosen = theirs.gather(2, torch.as_tensor(tokens)[:, :, None])[:, :, 0]
            lost = (theirs.max(dim=2).values - chosen) / theirs.norm(dim=2)
            bench.figures.within("decode", f"{family}: {len(prompt)} × {NEW} tokens beside the largest", lost.max().item(), TIE, f"{(lost > 0).sum().item()} not the largest")
            bench.figures.within("decode", f"{family}: logits of the prompt", models.distance(models.dumped(runs[0], "logits")[:, 0], theirs[:, 0]), TIE)
        bench.clear()
