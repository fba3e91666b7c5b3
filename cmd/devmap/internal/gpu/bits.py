"""What must be equal bit for bit on the GPU: 1, 2 and 4 program devices, both transports, a run and the same again."""

import filecmp
import functools
import os
import random
import subprocess

from shared import apart  # sets the path

from safetensors.torch import load_file

import draw
import models
import training
from engine import Failed, Job

SAME = 1e-5
LAYERS, LINES, SEQ, NEW = 8, 4, 256, 24
TRANSPORTS = ("peer", "host")


def bits(shared, figures):
    families(shared, figures)
    real(shared, figures)
    apart(figures, [functools.partial(processors, shared, family) for family in draw.FAMILIES])


def families(shared, figures):
    """Every family and way to run, cut at random: the test of the backend, in one process."""
    with figures.attempt("bits", "every family"):
        binary = os.path.join(shared.binaries, "cuda.test")
        done = subprocess.run([binary, "-test.run", "^TestGPUBits", "-test.v"], capture_output=True, text=True, check=False, timeout=240,
                              env=os.environ | {"DEVMAP_TEST_GPU": "1"})
        passed, failed = done.stdout.count("--- PASS"), done.stdout.count("--- FAIL")
        figures.same("bits", "every family and way to run, cut at random", passed if not done.returncode else 0, passed + failed, (done.stdout + done.stderr)[-300:] if done.returncode else "")


def ways(mode):
    """The first is what the others are held to; the second is the first again."""
    yield 1, {}, ""
    yield 1, {}, ""
    for count in (2, 4):
        for transport in TRANSPORTS:
            yield count, {"strategy": "pipeline", **({"schedule": "1f1b"} if mode == "train" else {})}, transport
    yield 2, {}, TRANSPORTS[0]
    if mode == "train":
        yield 2, {"strategy": "pipeline", "schedule": "interleaved", "recompute": "full"}, TRANSPORTS[0]


def real(shared, figures):
    """llama-3.2-1b's widths in bf16: dumped files, losses of three steps, what is saved; tokens."""
    engine = shared.engine("bits")
    folder = engine.place("llama")
    with figures.attempt("bits", "llama-3.2-1b"):
        fields = models.AutoConfig.from_pretrained(os.path.dirname(shared.config("llama-3.2-1b"))).to_dict() | {"num_hidden_layers": LAYERS, "bos_token_id": None, "eos_token_id": None}
        if shared.kind == "cpu":
            fields |= {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 1000, "pad_token_id": None}
        models.saved(models.config_of(fields), shared.seed, folder, "bf16-true")
        ids = models.drawn_ids(shared.seed, 2 * LINES, SEQ if shared.kind != "cpu" else 16, fields["vocab_size"])
        for mode in ("infer", "decode", "train"):
            with figures.attempt("bits", f"llama-3.2-1b {mode}"):
                compared(shared, figures, mode, folder, ids)
    engine.clear()


def compared(shared, figures, mode, folder, ids):
    kinds = {"infer": ("logits", "hidden"), "decode": ("logits",), "train": ("logits", "hidden", "grads")}[mode]
    first, odd, count = None, [], 0
    for devices, over, transport in ways(mode):
        engine = shared.engine("bits", transport=transport if shared.kind != "cpu" else "")
        way = Job(**{"mode": "train" if mode == "train" else "infer", "gpus": devices, "batch": LINES, "seq": ids.shape[1], "precision": "bf16-true",
                     "micro_batches": 4 if mode == "train" else 1, "new_tokens": NEW if mode == "decode" else 0} | over)
        flags = {"infer": [], "decode": ["--new-tokens", str(NEW)], "train": ["--steps", "3"]}[mode]
        name = f"{way} {transport}".strip()
        try:
            ran = engine.planned(folder, way, *flags, dumps=kinds, tokens=ids)
        except Failed as err:
            odd, count = [*odd, f"{name}: {str(err).strip().splitlines()[-1]}"], count + 1
            continue
        found = ran.files, ran.losses, ran.report["tokens"]
        if first is None:
            first = found
            continue
        differ = [kind for kind in kinds if not filecmp.cmp(found[0][kind], first[0][kind], shallow=False)]
        differ += [name_of for name_of, a, b in zip(("losses", "tokens"), found[1:], first[1:]) if a != b]
        count += 1
        odd += [f"{name}: {', '.join(differ)}"] if differ else []
        for path in ran.files.values():
            os.remove(path)
    figures.same("bits", f"llama-3.2-1b, {LAYERS} layers, {mode}: {', '.join(kinds)}, losses, tokens", count - len(odd), count, "; ".join(odd))


def processors(shared, family, figures):
    """fp32 of the reference on the processor and of the GPU: logits and gradients of a drawn model."""
    with figures.attempt("bits", f"{family} fp32"):
        rng = random.Random(f"{shared.seed}/processors/{family}")
        fields, seq = draw.case(family, rng, 3)
        ours, theirs = shared.engine("bits-" + family), shared.engine("bits-" + family, kind="cpu")
        theirs.count = 1000
        folder = ours.place("model")
        models.saved(models.config_of(fields), shared.seed, folder)
        ids = models.drawn_ids(shared.seed, 2, seq, fields["vocab_size"])
        way = Job(batch=2, seq=seq, precision="32-true")
        distance = models.distance(*(models.dumped(engine.planned(folder, way, dumps=("logits",), tokens=ids), "logits") for engine in (ours, theirs)))
        figures.within("bits", f"{family}: fp32 logits, processor and GPU", distance, SAME)
        if family in draw.TRAINED:
            way = Job(mode="train", batch=2, seq=seq, precision="32-true")
            found = [load_file(engine.planned(folder, way, dumps=("grads",), tokens=ids).files["grads"]) for engine in (ours, theirs)]
            figures.within("bits", f"{family}: fp32 gradients, processor and GPU", training.compared(*found)[0], SAME)
