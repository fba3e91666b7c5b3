"""weights.py MODELS FOLDER NAME...: checkpoints of drawn bf16 weights, as Transformers names them, made on the processor.

Values are normal (0.02; norms are 1): a block of them again and again, so that thousands of millions take seconds. A
folder a name, with its config.
"""

import concurrent.futures
import json
import os
import struct
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy  # noqa: E402
import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

BLOCK = 8388593  # values, a prime: rows of no width begin alike


def bf16(values):
    """Upper halves of fp32, which is bf16 rounded towards zero: the values are drawn all the same."""
    return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()


NORMAL, ONES = bf16(numpy.random.default_rng(1).normal(0, 0.02, BLOCK)), bf16(numpy.ones(1 << 16))


def laid(model):
    """The header of a safetensors file, and where each tensor's values begin and end in the file, with the block that
    they are made of (none: 0)."""
    entries, places, end = {}, [], 0
    for name, weight in model.named_parameters():
        begin, end = end, end + 2 * weight.numel()
        entries[name] = {"dtype": "BF16", "shape": list(weight.shape), "data_offsets": [begin, end]}
        places.append((begin, end, NORMAL if weight.dim() > 1 else b"" if name.endswith("bias") else ONES))
    header = json.dumps(entries | {"__metadata__": {"format": "pt"}}).encode()
    header += b" " * (-len(header) % 8)
    start = struct.pack("<Q", len(header)) + header
    return start, [(len(start) + begin, len(start) + end, block) for begin, end, block in places], len(start) + end


def filled(file, begin, end, block):
    while block and begin < end:
        begin += os.pwrite(file, memoryview(block)[: end - begin], begin)


def made(models, folder, name, pool):
    """Begins to write a checkpoint; what it waits for."""
    with open(os.path.join(models, name, "config.json")) as file:
        fields = json.load(file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields), dtype=torch.bfloat16)
    model.tie_weights()
    place = os.path.join(folder, name)
    os.makedirs(place)
    with open(os.path.join(place, "config.json"), "w") as file:
        json.dump(fields | {"dtype": "bfloat16"}, file)
    start, places, size = laid(model)
    file = os.open(os.path.join(place, "model.safetensors"), os.O_CREAT | os.O_WRONLY)
    os.truncate(file, size)
    os.pwrite(file, start, 0)
    return [pool.submit(filled, file, begin, end, block) for begin, end, block in places]


def main():
    models, folder, *names = sys.argv[1:]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for future in [future for name in names for future in made(models, folder, name, pool)]:
            future.result()


if __name__ == "__main__":
    main()
