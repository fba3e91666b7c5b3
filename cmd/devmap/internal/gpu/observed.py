"""What PART=watch watches: scripts as people write them, which know nothing of devmap.

usage: observed.py KIND MODEL [--batch N] [--seq N] [--steps N] [--reset] [--spike GIB] [--turns FILE --place I]

KIND is plain, generate, recompute, lora, two (a process more on the same GPU), oom (ends by an error that nobody
catches), killed (by SIGKILL, long after its peak), left (by os._exit) or init (initialises CUDA and holds nothing).
MODEL is a folder with a config. Each process prints a JSON object a line, at its end: its kind, its id, by
torch.cuda.max_memory_allocated and max_memory_reserved the most that it held, and seconds of its steps. --reset resets
these peaks in the midst of it, and the maximum is its own; --spike holds some GiB for 300 ms. With --turns four of
them take their steps by turns: the number in FILE is that of the turn, and each makes a file beside it when it is ready.
"""

import argparse
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import torch
from peer import PLACE, built, forward, timed, training

GIB = 1 << 30
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Peaks:
    """What the script itself says that it held at most."""

    allocated = reserved = 0

    def read(self):
        if PLACE == "cuda":
            self.allocated, self.reserved = max(self.allocated, torch.cuda.max_memory_allocated()), max(self.reserved, torch.cuda.max_memory_reserved())
        return {"allocated": self.allocated, "reserved": self.reserved}


def spike(gib, seconds=0.3):
    """Holds much for a short time, and gives it back to the driver."""
    held = torch.empty(int(gib * GIB), dtype=torch.uint8, device=PLACE)
    time.sleep(seconds)
    del held
    if PLACE == "cuda":
        torch.cuda.empty_cache()


def adapted(model):
    import peft

    config = peft.LoraConfig(r=16, target_modules=MODULES, task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config)


def stepping(kind, args):
    """A call that does what the script is for, once."""
    torch.manual_seed(0)
    model = built(os.path.join(args.model, "config.json"), kind == "recompute")
    ids = torch.randint(0, model.config.vocab_size, (args.batch, args.seq), device=PLACE)
    if kind == "generate":
        model.eval()
        return lambda: model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=32, do_sample=False)
    if kind == "prefill":
        return forward(model, ids, {})
    return training(adapted(model) if kind == "lora" else model, ids)


def contexts():
    """How many GPUs this process has a context on (CUDA driver API, cuDevicePrimaryCtxGetState)."""
    driver, active = ctypes.CDLL("libcuda.so.1"), 0
    for device in range(torch.cuda.device_count()):
        flags, is_active = ctypes.c_uint(), ctypes.c_int()
        if driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(is_active)):
            raise OSError("cuDevicePrimaryCtxGetState")
        active += is_active.value
    return active


def whose(path):
    with open(path) as file:
        return int(file.read() or -1)


def in_turn(path, place, step, steps, of=4, rounds=3, warm=3, patience=100):
    """Seconds of some steps a round, taken while the others wait; those that warm up are left out."""
    seconds, begun = [], time.monotonic()
    for turn in range(place, of * rounds, of):
        while whose(path) != turn:
            if time.monotonic() - begun > patience:
                raise TimeoutError(f"turn {turn} never came: another of them ended")
            time.sleep(0.005)
        seconds += timed(step, warm + steps)[warm:]
        with open(path + ".new", "w") as file:
            file.write(str(turn + 1))
        os.replace(path + ".new", path)
    return seconds


def run(kind, args):
    peaks, seconds = Peaks(), []
    step = stepping(kind, args)
    if args.turns:
        with open(f"{args.turns}.{args.place}", "w"):
            pass  # it is there
        seconds, args.steps = in_turn(args.turns, args.place, step, args.steps), 0
    for i in range(args.steps):
        seconds += timed(step, 1)
        if i == 1 and args.spike:
            spike(args.spike)
        if i == 2 and args.reset:
            peaks.read()
            torch.cuda.reset_peak_memory_stats()
    if PLACE == "cuda":
        torch.cuda.synchronize()
    return {"kind": kind, "pid": os.getpid(), "seconds": [round(one, 6) for one in seconds], "median": statistics.median(seconds[2:] or seconds)} | peaks.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--reset", action="store_true")
    parser.add_argument("--spike", type=float, default=0)
    parser.add_argument("--turns", default="")
    parser.add_argument("--place", type=int, default=0)
    args = parser.parse_args()
    if args.kind == "init":
        torch.cuda.init()
        time.sleep(1.2)  # as long as whatever watches takes to look
        print(json.dumps({"kind": "init", "pid": os.getpid(), "contexts": contexts()}), flush=True)
        return
    other = None
    if args.kind == "two":
        other = subprocess.Popen([sys.executable, __file__, "recompute", *sys.argv[2:]])
    kind = "plain" if args.kind in ("two", "oom", "killed", "left") else args.kind
    print(json.dumps(run(kind, args)), flush=True)
    if other and other.wait():
        sys.exit(1)
    if args.kind == "oom":
        torch.empty(1 << 40, dtype=torch.uint8, device=PLACE)
    if args.kind == "killed":
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGKILL)
    if args.kind == "left":
        os._exit(0)


if __name__ == "__main__":
    main()
