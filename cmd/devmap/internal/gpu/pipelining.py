"""PyTorch's own pipelines (torch.distributed.pipelining) on the same GPUs, with the cut that a plan has.

usage: pipelining.py MODELS CASES

CASES is a file: a list of objects with name, model, schedule (1f1b, gpipe, interleaved, zbv, or another, whose file is csv), stages
(of each its device and units), batch, micro_batches, seq, recompute and steps. A process a GPU, by NCCL; bf16 weights, sdpa, fused AdamW, gradients set to
none. torch.distributed.pipelining has stage i on rank i, so that ranks take GPUs in the order of their stages, anew for
each case. A matrix that is tied across stages is two that are trained apart, which is less work. Prints a JSON object a
case: seconds of each step after two to warm up, from where all begin to where all have ended, and what the allocator of
each GPU saw.
"""

import datetime
import faulthandler
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
import torch  # noqa: E402
from torch import distributed  # noqa: E402
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleZBVZeroBubble  # noqa: E402
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from peer import drawn  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe, "interleaved": ScheduleInterleaved1F1B, "zbv": ScheduleZBVZeroBubble}
WARM, IGNORED, WAITS = 2, -100, datetime.timedelta(seconds=60)
ON_GPUS = torch.cuda.is_available()  # processors try the script; its figures mean nothing


class Stage(torch.nn.Module):
    """A run of a model's units."""

    def __init__(self, whole, units):
        super().__init__()
        layers = [int(unit.rsplit(".", 1)[1]) for unit in units if ".layers." in unit]
        self.embed = whole.model.embed_tokens if "model.embed_tokens" in units else None
        self.layers = torch.nn.ModuleList(whole.model.layers[layer] for layer in layers)
        self.norm = whole.model.norm if "model.norm" in units else None
        self.head = whole.lm_head if "lm_head" in units else None
        self.rotary, self.recompute = None, False

    def forward(self, hidden):
        if self.embed is not None:
            hidden = self.embed(hidden)
        if self.layers:
            positions = torch.arange(hidden.shape[1], device=hidden.device)[None]
            angles = self.rotary(hidden, positions)
        for layer in self.layers:
            given = {"position_embeddings": angles, "attention_mask": None, "position_ids": positions}
            hidden = checkpoint(layer, hidden, use_reentrant=False, **given) if self.recompute else layer(hidden, **given)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        for last in (self.norm, self.head):
            hidden = last(hidden) if last is not None else hidden
        return hidden


def built(path, units, place):
    """A stage in bf16, its weights drawn where they are."""
    with open(path) as file:
        config = AutoConfig.for_model(**json.load(file))
    with torch.device("meta"):
        whole = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    stage = Stage(whole, units).to_empty(device=place)
    drawn(stage)
    stage.rotary = type(whole.model.rotary_emb)(whole.config, device=place)
    return stage.train(), config.vocab_size


def loss_of(logits, labels):
    """Transformers' own: in fp32, each token's by the one before it, whose label is there already."""
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


def synchronize():
    if ON_GPUS:
        torch.cuda.synchronize()
    distributed.barrier()


def measured(models, case, device, place):
    """One case on one of the ranks."""
    mine = [number for number, stage in enumerate(case["stages"]) if stage["device"] == device]
    torch.manual_seed(0)
    modules, vocabulary = zip(*(built(os.path.join(models, case["model"], "config.json"), case["stages"][number]["units"], place) for number in mine))
    stages = [PipelineStage(module, number, len(case["stages"]), place) for module, number in zip(modules, mine)]
    for stage in () if ON_GPUS else stages:
        stage._get_init_p2p_neighbors_ops = list  # gloo has no messages from a rank to itself
    for module in modules:
        module.recompute = case["recompute"] == "full"
    schedule = SCHEDULES.get(case["schedule"], _PipelineScheduleRuntime)(stages[0] if case["schedule"] in ("1f1b", "gpipe") else stages, case["micro_batches"], loss_fn=loss_of)
    if case["csv"]:
        schedule._load_csv(case["csv"])
    optimizer = torch.optim.AdamW([weight for module in modules for weight in module.parameters()], lr=1e-4, fused=ON_GPUS)
    ids = torch.randint(0, vocabulary[0], (case["batch"], case["seq"]), device=place)
    labels = torch.nn.functional.pad(ids, (0, 1), value=IGNORED)[:, 1:].contiguous()
    first, last = 0 in mine, len(case["stages"]) - 1 in mine
    spent = []
    for _ in range(WARM + case["steps"]):
        synchronize()
        begun = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        schedule.step(*[ids] * first, **({"target": labels, "losses": []} if last else {}))
        optimizer.step()
        synchronize()
        spent.append(time.perf_counter() - begun)
    return {"seconds": spent[WARM:], "peak_allocated_bytes": torch.cuda.max_memory_allocated() if ON_GPUS else 0}


def order(case):
    """Devices by the first of their stages. Later stages go round in the same order, and back under zbv, or as the schedule's file has them."""
    devices = [stage["device"] for stage in case["stages"]]
    first = list(dict.fromkeys(devices))
    if not case["csv"] and devices != (first + first[::-1] if case["schedule"] == "zbv" else first * (len(devices) // len(first))):
        raise ValueError(f"{case['name']}: torch.distributed.pipelining does not put stages on {devices}")
    return first


def one(models, case, rank, meeting):
    """What all ranks measured of a case, told by the first; an error of one ends all, and so does one that waits in vain."""
    gpus = order(case)
    place = torch.device("cuda", gpus[rank]) if ON_GPUS else torch.device("cpu")
    gc.collect()
    if ON_GPUS:
        torch.cuda.empty_cache()  # of the GPU before
        torch.cuda.set_device(place)
        torch.cuda.reset_peak_memory_stats()
    backend = {"backend": "nccl", "device_id": place} if ON_GPUS else {"backend": "gloo"}
    distributed.init_process_group(**backend, init_method="file://" + meeting, rank=rank, world_size=len(gpus), timeout=WAITS)
    every = [None] * len(gpus)
    distributed.all_gather_object(every, measured(models, case, gpus[rank], place))
    steps = [max(of) for of in zip(*(ranked["seconds"] for ranked in every))]
    peaks = dict(zip(gpus, (ranked["peak_allocated_bytes"] for ranked in every)))
    if rank == 0:
        print(json.dumps({"name": case["name"], "seconds": statistics.median(steps), "all_seconds": steps, "peak_allocated_bytes": [peaks[gpu] for gpu in sorted(peaks)]}), flush=True)
    distributed.destroy_process_group()


def ranked(rank, models, cases, folder):
    warnings.filterwarnings("ignore")
    for number, case in enumerate(cases):
        faulthandler.dump_traceback_later(2 * WAITS.total_seconds(), exit=True)  # anew for each
        one(models, case, rank, os.path.join(folder, f"meeting{number}"))


def main():
    models, path = sys.argv[1:]
    with open(path) as file:
        cases = json.load(file)
    world = 1 + max(stage["device"] for case in cases for stage in case["stages"])
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(ranked, (models, cases, folder), nprocs=world)


if __name__ == "__main__":
    main()
