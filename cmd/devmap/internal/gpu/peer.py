"""PyTorch's own step on the same GPU: eager, sdpa, Transformers' loss, fused AdamW, gradients set to none.

usage: peer.py MODELS CASE... [--batch N] [--seq N] [--steps N] [--table]

MODELS is a folder of folders with a config.json each; a case is llama-3.2-1b/train, …/train/recompute, …/train/compile, …/infer or …/prefill.
Prints a JSON object a case: seconds of each step after two to warm up, and what the caching allocator saw. Before a
case nothing of another is allocated: `before_bytes` says so.
"""

import argparse
import gc
import json
import os
import statistics
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, initialization  # noqa: E402

warnings.filterwarnings("ignore")
WARM = 2
PLACE = "cuda" if torch.cuda.is_available() else "cpu"  # a processor tries the script; its figures mean nothing


def synchronize():
    if PLACE == "cuda":
        torch.cuda.synchronize()


def drawn(model):
    """Gives a model's weights values, where they are."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.02)
            else:
                weight.fill_(1)


def built(path, recompute=False, implementation="sdpa"):
    """A model in bf16 on the GPU, its weights drawn there. It is made on the processor, without values: made on the GPU
    a tied head would have memory of its own until it is tied, and that might be the process's peak."""
    with open(path) as file:
        fields = json.load(file)
    config = AutoConfig.for_model(**fields)
    with initialization.no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=implementation)
    model.tie_weights()
    model.to(PLACE)
    drawn(model)
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def training(model, ids):
    """A call that takes a step."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=PLACE == "cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        return loss

    return step


FORWARDS = {  # a call as it is written by default, which keeps a cache, and as generation makes the first one
    "infer": {}, "prefill": {"use_cache": True, "logits_to_keep": 1},
}


def forward(model, ids, flags):
    """A call that makes logits."""
    model.eval()

    def step():
        with torch.no_grad():
            return model(input_ids=ids, **flags).logits[0, 0, 0]

    return step


def timed(step, count):
    """Seconds of each of a number of calls, the GPU idle before and after."""
    out = []
    for _ in range(count):
        synchronize()
        begun = time.perf_counter()
        step()
        synchronize()
        out.append(time.perf_counter() - begun)
    return out


def parts(model, ids, count=3):
    """Milliseconds of forward, backward and update, each waited for."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=PLACE == "cuda")
    rows = []
    for _ in range(count):
        marks = []

        def mark():
            synchronize()
            marks.append(time.perf_counter())

        optimizer.zero_grad(set_to_none=True)
        mark()
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        mark()
        loss.backward()
        mark()
        optimizer.step()
        mark()
        rows.append([1e3 * (b - a) for a, b in zip(marks, marks[1:])])
    return dict(zip(("forward", "backward", "update"), (round(statistics.median(column), 2) for column in zip(*rows))))


def table(step, rows=60):
    """What the GPU did in one step, by kernel: milliseconds, calls, name."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        synchronize()
    found = {}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spent, calls = found.get(event.name, (0, 0))
            found[event.name] = spent + event.time_range.elapsed_us() / 1e3, calls + 1
    ordered = sorted(((ms, calls, name) for name, (ms, calls) in found.items()), reverse=True)
    return {"kernels_ms": round(sum(row[0] for row in ordered), 3), "rows": [[round(ms, 3), calls, name[:110]] for ms, calls, name in ordered[:rows]]}


def measured(case, args):
    """One case."""
    name, mode, *rest = case.split("/")
    recompute = rest == ["recompute"]
    torch._dynamo.reset()
    gc.collect()
    if PLACE == "cuda":
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.manual_seed(args.seed)
    model = built(os.path.join(args.models, name, "config.json"), recompute)
    ids = torch.randint(0, model.config.vocab_size, (args.batch, args.seq), device=PLACE)
    step = training(torch.compile(model) if rest == ["compile"] else model, ids) if mode == "train" else forward(model, ids, FORWARDS[mode])
    timed(step, WARM)
    if PLACE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = timed(step, args.steps if mode == "train" else 3)
    out = {
        "model": name, "mode": mode, "recompute": recompute, "batch": args.batch, "seq": args.seq, "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": statistics.median(seconds), "all_seconds": [round(one, 5) for one in seconds], "before_bytes": before,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(), "peak_reserved_bytes": torch.cuda.max_memory_reserved(), 
        "loss": float(step()), "versions": f"torch {torch.__version__}, transformers {transformers.__version__}",
    }
    if mode == "train" and rest != ["compile"]:
        out["parts_ms"] = parts(model, ids)
    if args.table and mode == "train" and rest != ["compile"] and PLACE == "cuda":
        out["table"] = table(step)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models")
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    for case in args.cases:
        print(json.dumps(measured(case, args)), flush=True)


if __name__ == "__main__":
    main()
