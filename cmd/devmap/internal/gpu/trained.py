"""A model of bytes, trained by devmap on the repository's text, beside PyTorch in bf16 and in fp32; then its words."""

import concurrent.futures
import os
import re
import sys

import shared  # noqa: F401 (sets the path)

import numpy
import torch

import models
from engine import Job

SEQ, BATCH, STEPS, RATE, PROMPT, NEW = 256, 32, 1000, 1e-3, 64, 64
BAND, LAST = 2.0, 200
TEXTS = ("RATIONALE.md", "ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "BENCHMARKS.md")
MODEL = {
    "model_type": "llama", "vocab_size": 256, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "max_position_embeddings": 512, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
}
SMALL = MODEL | {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


def lines(root, seed):
    """The text, its words with one space between, in pieces of SEQ bytes in an order that the seed says."""
    whole = b" ".join(open(os.path.join(root, name), "rb").read() for name in TEXTS)
    text = re.sub(rb"[^A-Za-z0-9,.;:'()-]+", b" ", whole)
    pieces = numpy.frombuffer(text[: len(text) // SEQ * SEQ], dtype=numpy.uint8).reshape(-1, SEQ)
    return pieces[numpy.random.default_rng(seed).permutation(len(pieces))]


def steps_of(shared):
    return 4 if shared.small else STEPS


def trained(shared, figures):
    with figures.attempt("trained", "a model of bytes"):
        engine = shared.engine("trained")
        folder, out = engine.place("bytes"), engine.place("saved")
        models.saved(models.config_of(SMALL if shared.small else MODEL), shared.seed, folder)
        text, count, took = lines(shared.root, shared.seed), steps_of(shared), []

        def ours():
            job = Job(mode="train", batch=BATCH, seq=SEQ, precision="bf16-mixed")
            flags = ("--steps", str(count), "--lr", str(RATE), "--clip", "1", "--save", out)
            ran = engine.planned(folder, job, *flags, tokens=text)
            took.append(sum(step["seconds"] for step in ran.report["steps"]))
            return ran.losses

        # PyTorch's two curves one after the other, beside devmap's: no time of them is a figure.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            theirs = pool.submit(shared.python, "trained.py", folder, shared.root, shared.seed, count)
            mine = ours()
            curves = dict(zip(("bf16", "fp32"), ([float(word) for word in line.split()] for line in theirs.result().splitlines())))
        judged(figures, mine, curves, took[0])
        spoken(figures, engine, out, text)


def judged(figures, ours, curves, took):
    """The mean distance of the last losses from fp32's, each of the same batch."""
    exact, last = curves["fp32"], min(LAST, len(ours) // 2)
    apart = [float(numpy.mean(numpy.abs(numpy.subtract(curve[-last:], exact[-last:])))) for curve in (ours, curves["bf16"])]
    ends = ", ".join(f"{name} {numpy.mean(curve[-last:]):.4f}" for name, curve in (("devmap bf16-mixed", ours), ("PyTorch bf16", curves["bf16"]), ("PyTorch fp32", exact)))
    figures.within("trained", f"loss after {len(ours)} steps of {BATCH} × {SEQ} bytes: from fp32 / PyTorch's bf16 from fp32", apart[0] / apart[1], BAND,
                   f"{ends}; band {apart[1]:.2g}, {took:.0f} s of steps, from {ours[0]:.2f}")


def spoken(figures, engine, out, text):
    """Greedy tokens after a prompt, on one device and on two, beside Transformers' on what was saved."""
    theirs = models.loaded(out, torch.float32)
    prompt = text[:2, :PROMPT].astype(int)
    asked = torch.as_tensor(prompt)
    wanted = theirs.generate(asked, max_new_tokens=NEW, do_sample=False, attention_mask=torch.ones_like(asked), pad_token_id=0)[:, PROMPT:].tolist()
    for gpus in (1, 2):
        job = Job(gpus=gpus, strategy="pipeline", batch=2, seq=PROMPT, new_tokens=NEW, precision="32-true")
        got = engine.planned(out, job, "--new-tokens", str(NEW), tokens=prompt).report["tokens"]
        equal = sum(a == b for mine, of in zip(got, wanted) for a, b in zip(mine, of))
        figures.same("trained", f"greedy tokens on {gpus}", equal, 2 * NEW, f"{bytes(got[0]).decode('ascii', 'replace')!r}")


def curve(folder, text, count, place, autocast):
    """PyTorch's losses of the same steps: Transformers' model, fp32 weights, under autocast or not."""
    model = models.loaded(folder, torch.float32).to(place).train()
    model.set_attn_implementation("sdpa")
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=place.type == "cuda")
    rows = torch.as_tensor(text.astype("int64"), device=place)
    found = []
    for step in range(count):
        batch = rows[[(step * BATCH + k) % len(rows) for k in range(BATCH)]]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(place.type, torch.bfloat16, enabled=autocast):
            loss = model(input_ids=batch, labels=batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found).tolist()


def main():
    """trained.py FOLDER ROOT SEED STEPS: PyTorch's losses in bf16, then in fp32, a line each."""
    folder, root, seed, count = sys.argv[1:]
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for autocast in (True, False):
        print(*(f"{loss:.7g}" for loss in curve(folder, lines(root, int(seed)), int(count), place, autocast)))


if __name__ == "__main__":
    main()
