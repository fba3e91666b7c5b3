"""Memory, as the report tells it and as the process shows it; and how fast, beside PyTorch on the same processor."""

import statistics
import time

import torch

import models
import training
from engine import Job

MIB = 1 << 20
UNTOUCHED = "workspace"  # of a GPU's libraries: nothing on a CPU writes it
LLAMA = {
    "model_type": "llama", "vocab_size": 4001, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6, "num_attention_heads": 8,
    "num_key_value_heads": 4, "max_position_embeddings": 512, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
}
MEMORY = (
    Job(batch=4, seq=128), Job(batch=4, seq=128, gpus=2, strategy="pipeline", micro_batches=2), Job(batch=4, seq=64, new_tokens=4, gpus=2, strategy="pipeline"),
    Job(mode="train", batch=2, seq=128), Job(mode="train", batch=4, seq=128, micro_batches=4, gpus=2, strategy="pipeline"),
    Job(mode="train", batch=4, seq=128, micro_batches=4, gpus=2, strategy="pipeline", schedule="interleaved", recompute="full", precision="bf16-mixed"),
    Job(mode="train", batch=4, seq=128, micro_batches=2, gpus=3, precision="bf16-true", optimizer="sgd"),
)


def memory(bench):
    """In each region the highest byte that was written is the last that was planned, and the process grows by the
    arenas and little more than a process that only compiles the program."""
    folder = bench.engine.place("llama")
    models.saved(models.config_of(LLAMA), bench.seed, folder)
    for job in MEMORY:
        case = f"{job.mode} {job.precision} {job}" + (f" +{job.new_tokens} tokens" if job.new_tokens else "")
        with bench.figures.attempt("memory", case):
            plan = bench.engine.plan(folder, job)
            flags = ["--new-tokens", str(job.new_tokens)] if job.new_tokens else []
            ran = bench.engine.run(plan, *flags)
            found = ran.report["devices"]
            regions = [region for device in found for region in device["regions"] if region["name"] != UNTOUCHED]
            touched = sum(region["touched_bytes"] == region["planned_bytes"] for region in regions)
            odd = [f"{region['name']}: {region['touched_bytes']} of {region['planned_bytes']}" for region in regions if region["touched_bytes"] != region["planned_bytes"]]
            bench.figures.same("memory", case + ": regions", touched, len(regions), "; ".join(odd[:4]))
            peaks = sum(device["measured"]["peak_allocated_bytes"] == device["predicted"]["peak_allocated_bytes"] for device in found)
            bench.figures.same("memory", case + ": peaks", peaks, len(found))
            arenas = sum(device["predicted"]["peak_allocated_bytes"] for device in found)
            growth = ran.peak_bytes - bench.engine.baseline(plan)
            bench.figures.within("memory", case + ": growth, MiB", growth / MIB, (arenas + max(64 * MIB, arenas // 10)) / MIB, f"arenas {arenas / MIB:.1f} MiB")
    bench.clear()


SPEED = LLAMA | {"vocab_size": 8000, "hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12}


def best(call, times=3):
    call()
    return min(timed(call) for _ in range(times))


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def speed(bench):
    """Tokens a second of the CPU reference and of PyTorch on this processor, one after the other. No bar: the
    reference is the judge, not a product."""
    folder = bench.engine.place("llama")
    model = models.saved(models.config_of(SPEED), bench.seed, folder)
    ids = models.drawn_ids(bench.seed, 4, 128, model.config.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        training.loss_of(model, ids).backward()
        optimizer.step()

    for mode, call in (("infer", lambda: models.forward(model, ids)), ("train", step)):
        with bench.figures.attempt("speed", mode):
            job = Job(mode=mode, batch=4, seq=128)
            ran = bench.engine.planned(folder, job, "--steps", "4", tokens=ids)
            ours = statistics.median(one["seconds"] for one in ran.report["steps"][1:])
            theirs = best(call)
            bench.figures.told("speed", f"{mode}, llama of {sum(w.numel() for w in model.parameters()) / 1e6:.0f} million, 4 × 128 tokens, fp32", f"{theirs / ours:.2f}×",
                               f"devmap {ids.size / ours:.0f} tokens/s, PyTorch {ids.size / theirs:.0f} with {torch.get_num_threads()} threads")
    bench.clear()
