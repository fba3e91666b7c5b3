"""loads.py FOLDER: bytes a second of safetensors' load_file to the GPU, and of copies from pinned memory, as JSON."""

import json
import os
import sys
import time

import torch
from safetensors.torch import load_file

TIMES, BYTES = 4, 1 << 30


def fastest(call, size):
    """Of a number of calls after one to warm up."""
    call()
    spent = []
    for _ in range(TIMES):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        call()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begun)
    return size / min(spent)


def main():
    path = os.path.join(sys.argv[1], "model.safetensors")
    host, device = torch.empty(BYTES, dtype=torch.uint8).random_(0, 256).pin_memory(), torch.empty(BYTES, dtype=torch.uint8, device="cuda")
    json.dump({"copy": fastest(lambda: device.copy_(host, non_blocking=True), BYTES), "load_file": fastest(lambda: load_file(path, device="cuda"), os.path.getsize(path))}, sys.stdout)


if __name__ == "__main__":
    main()
