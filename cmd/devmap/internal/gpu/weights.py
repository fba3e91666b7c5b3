"""weights.py CONFIG.json FOLDER: a checkpoint of drawn bf16 weights, as Transformers names them, made on the processor.

Values are normal (0.02; norms are 1): a block of them again and again, so that thousands of millions take seconds.
"""

import json
import os
import sys
import zlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

BLOCK = 1048583  # a prime: rows of no width begin alike


def drawn(name, shape):
    if len(shape) < 2:
        return torch.zeros(shape, dtype=torch.bfloat16) if name.endswith("bias") else torch.ones(shape, dtype=torch.bfloat16)
    block = torch.randn(BLOCK, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))).mul_(0.02).bfloat16()
    count = shape.numel()
    return block.repeat(-(-count // BLOCK))[:count].reshape(shape)


def main():
    path, folder = sys.argv[1:]
    with open(path) as file:
        fields = json.load(file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields), dtype=torch.bfloat16)
    model.tie_weights()
    os.makedirs(folder, exist_ok=True)
    tensors = {name: drawn(name, weight.shape) for name, weight in model.named_parameters()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(fields | {"dtype": "bfloat16"}, file)


if __name__ == "__main__":
    main()
