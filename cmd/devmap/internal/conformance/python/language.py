"""A model of bytes, trained by devmap on the repository's own text, saved, and loaded by Transformers."""

import os
import re

import numpy
import torch

import models
from engine import Job

SEQ, BATCH, STEPS, PROMPT, NEW = 48, 12, 350, 32, 64
TEXT, BYTES, LEARNT = "LICENSE", 8000, 1.0
MODEL = {
    "model_type": "llama", "vocab_size": 256, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
}


def lines(root, seed):
    """The beginning of a text, its words with one space between, in pieces of SEQ bytes in an order that the seed
    says: so little that a minute is enough to learn it, and greedy tokens do not all become the same."""
    with open(os.path.join(root, TEXT), "rb") as file:
        text = re.sub(rb"[^A-Za-z0-9,.;:'()-]+", b" ", file.read())[:BYTES]
    pieces = numpy.frombuffer(text[: len(text) // SEQ * SEQ], dtype=numpy.uint8).reshape(-1, SEQ)
    return pieces[numpy.random.default_rng(seed).permutation(len(pieces))]


def language(bench):
    """Its 64 greedy tokens after a prompt, on one device and on two, are Transformers'."""
    with bench.figures.attempt("language", "a model of bytes"):
        folder, out = bench.engine.place("bytes"), bench.engine.place("trained")
        models.saved(models.config_of(MODEL), bench.seed, folder)
        text = lines(bench.root, bench.seed)
        job = Job(mode="train", gpus=2, strategy="pipeline", batch=BATCH, seq=SEQ, micro_batches=2, precision="32-true")
        flags = ("--steps", str(STEPS), "--lr", "3e-3", "--clip", "1", "--save", out)
        ran = bench.engine.planned(folder, job, *flags, tokens=text)
        curve = " ".join(f"{loss:.2f}" for loss in ran.losses[:: STEPS // 10] + ran.losses[-1:])
        last = sum(ran.losses[-20:]) / 20
        seconds = sum(step["seconds"] for step in ran.report["steps"])
        bench.figures.within("language", f"loss after {STEPS} steps, nats a byte", last, LEARNT, f"{curve}; {seconds:.0f} s")
        theirs = models.loaded(out)
        prompt = text[:2, :PROMPT].astype(int)
        asked = torch.as_tensor(prompt)
        wanted = theirs.generate(asked, max_new_tokens=NEW, do_sample=False, attention_mask=torch.ones_like(asked), pad_token_id=0)[:, PROMPT:].tolist()
        different = len({token for row in wanted for token in row})
        for gpus in (1, 2):
            job = Job(gpus=gpus, strategy="pipeline", batch=2, seq=PROMPT, new_tokens=NEW, precision="32-true")
            got = bench.engine.planned(out, job, "--new-tokens", str(NEW), tokens=prompt).report["tokens"]
            equal = sum(a == b for ours, theirs_of in zip(got, wanted) for a, b in zip(ours, theirs_of))
            bench.figures.same("language", f"tokens on {gpus}", equal, 2 * NEW, f"{different} different: {bytes(got[0]).decode('ascii', 'replace')!r}")
    bench.clear()
