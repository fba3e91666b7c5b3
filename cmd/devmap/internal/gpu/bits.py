"""What must be equal bit for bit on the GPU: 1, 2 and 4 program devices, both transports, a run and the same again."""

import filecmp
import os
import re

import shared  # noqa: F401 (sets the path)

import models
from engine import Failed, Job
from kernels import tested

SAME = 1e-5
LAYERS, VOCABULARY, LINES, SEQ, NEW, CUTS = 4, 16000, 4, 256, 24, 1
TRANSPORTS = ("peer", "host")


def bits(shared, figures):
    real(shared, figures)
    for call in (families, processors):
        with figures.attempt("bits", call.__name__):
            call(shared, figures)


def families(shared, figures):
    """Every family and way to run, cut at random, by both transports: the backend's own test, in one process."""
    test = os.path.join(shared.binaries, "cuda.test")
    tested(figures, "bits", test, "^TestGPUBits$", f"every family and way to run, {CUTS} cuts of each, by both transports", f"-cuts={CUTS}", f"-seed={shared.seed}")


def processors(shared, figures):
    """Every family and way to run on the processor and on the GPU: the furthest in fp32."""
    test = os.path.join(shared.binaries, "cuda.test")
    said = tested(figures, "bits", test, "^TestGPUFamilies$", "processor and GPU, every family and way to run: within 1e-5, bf16 within twice the processor's own")
    exact = [(float(distance), name) for distance, name in re.findall(r"([\d.]+e[-+]\d+) (\S+) \(limit 1\.0e-05\)", said)]
    if exact:
        figures.within("bits", "fp32, processor and GPU, the furthest of " + str(len(exact)), max(exact)[0], SAME, max(exact)[1])


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
    with figures.attempt("bits", "llama-3.2-1b"):
        folder, ids = llama(shared, engine)
        for mode in ("infer", "decode", "train"):
            with figures.attempt("bits", f"llama-3.2-1b {mode}"):
                compared(engine, figures, mode, folder, ids)
    engine.clear()


def llama(shared, engine, layers=LAYERS):
    """A folder with llama-3.2-1b's widths in fewer layers, and token ids for it."""
    folder = engine.place("llama")
    fields = models.AutoConfig.from_pretrained(shared.config("llama-3.2-1b")).to_dict() | {"num_hidden_layers": layers, "vocab_size": VOCABULARY, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    if shared.kind == "cpu":
        fields |= {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 1000}
    models.saved(models.config_of(fields), shared.seed, folder, "bf16-true")
    ids = models.drawn_ids(shared.seed, 2 * LINES, SEQ if shared.kind != "cpu" else 16, fields["vocab_size"])
    return folder, ids


def compared(engine, figures, mode, folder, ids, ways=ways, section="bits", layers=LAYERS):
    """Everything that a way of running leaves, beside what the first one left."""
    kinds = {"infer": ("logits", "hidden"), "decode": ("logits",), "train": ("logits", "hidden", "grads")}[mode]
    first, odd, count = None, [], 0
    for devices, over, transport in ways(mode):
        engine.transport = transport
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
        differ = [kind for kind in kinds if os.path.samefile(found[0][kind], first[0][kind]) or not filecmp.cmp(found[0][kind], first[0][kind], shallow=False)]
        differ += [name_of for name_of, a, b in zip(("losses", "tokens"), found[1:], first[1:]) if a != b]
        count += 1
        odd += [f"{name}: {', '.join(differ)}"] if differ else []
        for path in ran.files.values():
            os.remove(path)
    figures.same(section, f"llama-3.2-1b's widths, {layers} layers, {mode}: {', '.join(kinds)}, losses, tokens", count - len(odd), count, "; ".join(odd))
