"""A model of bytes, trained by devmap on the repository's text, beside PyTorch in bf16 and in fp32; then its words."""

import concurrent.futures
import os
import re
import sys
import time

import shared  # noqa: F401 (sets the path)

import numpy
import torch

import models
from engine import Job
from transformers.models.llama import modeling_llama

SEQ, BATCH, RATE, PROMPT, NEW = 256, 8, 1e-3, 64, 64
PILOT, SECONDS, PEERS = 300, 125, 120  # steps of which the shortest tells how long one takes; seconds of steps; at most so many of PyTorch's
UNCAPTURED = 4  # steps
BAND, LAST = 2.0, 1000
TEXTS, LEFT_OUT = (".md", ".go", ".py", ".cu"), ("bin", "shared", "fixtures")
# Thin and deep: launches decide how long a step takes, so that PyTorch's fp32 takes little longer than bf16.
MODEL = {
    "model_type": "llama", "vocab_size": 256, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 12, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
}
SMALL = MODEL | {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


def texts(root):
    """Files of the repository that people read, in an order that is always the same."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(TEXTS))


def lines(root, seed):
    """The text, its words with one space between, in pieces of SEQ bytes in an order that the seed says."""
    whole = b" ".join(open(name, "rb").read() for name in texts(root))
    text = re.sub(rb"[^A-Za-z0-9,.;:'()-]+", b" ", whole)
    pieces = numpy.frombuffer(text[: len(text) // SEQ * SEQ], dtype=numpy.uint8).reshape(-1, SEQ)
    return pieces[numpy.random.default_rng(seed).permutation(len(pieces))]


def trained(shared, figures):
    with figures.attempt("trained", "a model of bytes"):
        engine = shared.engine("trained")
        folder, out = engine.place("bytes"), engine.place("saved")
        models.saved(models.config_of(SMALL if shared.small else MODEL), shared.seed, folder)
        text = lines(shared.root, shared.seed)

        def steps(count, *flags):
            job = Job(mode="train", batch=BATCH, seq=SEQ, precision="bf16-mixed")
            ran = engine.planned(folder, job, "--steps", str(count), "--lr", str(RATE), "--clip", "1", *flags, tokens=text)
            return ran.losses, [step["seconds"] for step in ran.report["steps"]]

        count = 8 if shared.small else int(SECONDS / min(steps(PILOT)[1]))
        ours, took = steps(count, "--save", out)
        figures.told("trained", f"{count} steps of {BATCH} × {SEQ} bytes, seconds", f"{sum(took):.0f}", f"the texts' {text.size / 1e6:.1f} MB {count * BATCH / len(text):.1f} times; loss from {ours[0]:.2f} to {numpy.mean(ours[-LAST:]):.3f}")
        spoken(figures, engine, out, text)
        # PyTorch's two curves side by side: no time of them is a figure.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            begun = {kind: pool.submit(shared.python, "trained.py", folder, shared.root, shared.seed, count, PEERS, kind) for kind in ("bf16", "fp32")}
            curves = {kind: [float(word) for word in result.result().split()] for kind, result in begun.items()}
        judged(figures, ours, curves)


def judged(figures, ours, curves):
    """The mean distance of losses from fp32's, each of the same batch, behind as many steps as all three have."""
    count = min(map(len, (ours, *curves.values())))
    last = min(LAST, count // 2)
    mine, rounded, exact = (numpy.array(curve[count - last : count]) for curve in (ours, curves["bf16"], curves["fp32"]))
    own = numpy.abs(rounded - exact).mean()
    ends = ", ".join(f"{name} {curve.mean():.4f}" for name, curve in (("devmap bf16-mixed", mine), ("PyTorch bf16", rounded), ("PyTorch fp32", exact)))
    figures.within("trained", f"loss of steps {count - last + 1} to {count}: from fp32 / PyTorch's bf16 from fp32", numpy.abs(mine - exact).mean() / own, BAND, f"{ends}; PyTorch's bf16 is {own:.2g} from fp32 a step")


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


def taking(model, batch, autocast, capturable):
    """A call that takes a step on what lies in batch, as PyTorch's users write it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=capturable, capturable=capturable)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(batch.device.type, torch.bfloat16, enabled=autocast, cache_enabled=False):
            loss = model(input_ids=batch, labels=batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def recorded(step, side):
    """A step as a graph, and the loss that it leaves; None where it is none."""
    # Without padding there is no mask; while capturing Transformers makes one, which holds the same.
    modeling_llama.create_causal_mask = lambda **_: None
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=side):
            return graph, step()
    except RuntimeError as err:
        print(f"not captured: {err}", file=sys.stderr)
        return None, None


def curve(folder, text, count, seconds, place, autocast):
    """PyTorch's losses of the same steps, as many as it takes in some seconds: Transformers' model, fp32 weights, under
    autocast or not. On a GPU the steps after the first are replays of one that was captured, where it can be: the same
    kernels, without Python between them."""
    model = models.loaded(folder, torch.float32).to(place).train()
    model.set_attn_implementation("sdpa")
    rows, captured = torch.as_tensor(text.astype("int64"), device=place), place.type == "cuda"
    batch, found = rows[:BATCH].clone(), torch.zeros(count, device=place)
    step, graph = taking(model, batch, autocast, captured), None
    side = torch.cuda.Stream() if captured else None
    if captured:
        torch.cuda.synchronize()  # what was made so far is made on another stream
    begun = time.monotonic()
    with torch.cuda.stream(side):  # None: where it is
        for index in range(count):
            if index % 100 == 0 and index:
                float(found[index - 1])  # the GPU is here, too
                if time.monotonic() - begun > seconds:
                    count = index
                    break
            batch.copy_(rows[(torch.arange(BATCH, device=place) + index * BATCH) % len(rows)])
            if captured and index == UNCAPTURED:
                graph, loss = recorded(step, side)
            if graph:
                graph.replay()
            else:
                loss = step()
            found[index] = loss.detach()
    if captured:
        torch.cuda.synchronize()
    return found[:count].tolist()


def main():
    """trained.py FOLDER ROOT SEED STEPS SECONDS bf16|fp32: PyTorch's losses."""
    folder, root, seed, count, seconds, kind = sys.argv[1:]
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(*(f"{loss:.7g}" for loss in curve(folder, lines(root, int(seed)), int(count), float(seconds), place, kind == "bf16")))


if __name__ == "__main__":
    main()
