"""copies.py BYTES...: PyTorch's copies, in bytes a second, as JSON: from each GPU to each other one (peers: from, to,
bytes, rate), and from pinned memory to all GPUs at once, one after another (hosts)."""

import json
import sys
import time

import torch

ONCE, HOST, TURNS = 256 << 20, 1 << 30, 4


def between(source, target, size):
    """The mean of copies behind one to warm up, timed where they run: on the source's stream."""
    of, to = torch.empty(size, dtype=torch.uint8, device=f"cuda:{source}"), torch.empty(size, dtype=torch.uint8, device=f"cuda:{target}")
    turns = min(max(TURNS, TURNS * ONCE // size), 64)
    with torch.cuda.device(source):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        found = []
        for _ in range(3):
            to.copy_(of, non_blocking=True)
            begin.record()
            for _ in range(turns):
                to.copy_(of, non_blocking=True)
            end.record()
            end.synchronize()
            found.append(1e3 * size * turns / begin.elapsed_time(end))
    return max(found)


def from_host(gpus):
    """Bytes a second of copies from pinned memory to some GPUs at once, of all together."""
    sources = [torch.empty(HOST, dtype=torch.uint8).pin_memory() for _ in gpus]
    targets = [torch.empty(HOST, dtype=torch.uint8, device=f"cuda:{gpu}") for gpu in gpus]

    def wait():
        for gpu in gpus:
            torch.cuda.synchronize(gpu)

    found = []
    for _ in range(3):
        wait()
        begun = time.perf_counter()
        for _ in range(TURNS):
            for source, target in zip(sources, targets):
                target.copy_(source, non_blocking=True)
        wait()
        found.append(TURNS * HOST * len(gpus) / (time.perf_counter() - begun))
    return max(found)


def main():
    gpus = range(torch.cuda.device_count())
    peers = [(source, target, size, between(source, target, size)) for size in map(int, sys.argv[1:]) for source in gpus for target in gpus if source != target]
    json.dump({"peers": peers, "host": from_host(gpus), "hosts": [from_host([gpu]) for gpu in gpus]}, sys.stdout)


if __name__ == "__main__":
    main()
