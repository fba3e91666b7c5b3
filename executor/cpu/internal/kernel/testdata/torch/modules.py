"""Writes modules.json: what PyTorch and Transformers make, as bits, of small
inputs, for TestModules. Made with torch 2.11 and transformers 5.17 on a CPU:

    python modules.py > modules.json
"""

import json

import torch
from transformers.activations import ACT2FN
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

generator = torch.Generator().manual_seed(12)


def draw(*shape, dtype=torch.bfloat16, spread=1.0):
    return (spread * torch.randn(*shape, generator=generator)).to(dtype)


def bits(tensor):
    """The bits of a matrix, each row as one hexadecimal string."""
    kind = torch.int16 if tensor.dtype == torch.bfloat16 else torch.int32
    width, mask = (4, 0xFFFF) if tensor.dtype == torch.bfloat16 else (8, 0xFFFFFFFF)
    rows = tensor.detach().reshape(-1, tensor.shape[-1]).contiguous().view(kind).tolist()
    return ["".join(f"{value & mask:0{width}x}" for value in row) for row in rows]


def norm(style, module):
    x, add = draw(4, 48, spread=2.0), draw(4, 48)
    with torch.no_grad():
        module.weight.copy_(draw(48))
        if style == "layer":
            module.bias.copy_(draw(48))
        y = module(x)
        case = {"kernel": "norm", "dims": {"style": style, "epsilon": "1e-05"}, "x": bits(x), "weight": bits(module.weight)}
        if style == "layer":
            case["bias"] = bits(module.bias)
        return [case | {"y": bits(y)}, case | {"add": bits(add), "y": bits(add + y)}]


def gate(name):
    gate, up = draw(4, 48), draw(4, 48)
    names = {"gelu_pytorch_tanh": "gelu_tanh"}
    dims = {"activation": names.get(name, name)}
    return [
        {"kernel": "gate", "dims": dims, "gate": bits(gate), "up": bits(up), "y": bits(ACT2FN[name](gate) * up)},
        {"kernel": "activate", "dims": dims, "x": bits(gate), "y": bits(ACT2FN[name](gate))},
    ]


def embedding():
    table, ids, add = draw(9, 48), torch.randint(9, (2, 3), generator=generator), draw(6, 48)
    scale = 27.712812921102035  # of a width of 768
    rows = torch.nn.functional.embedding(ids, table).reshape(6, 48)
    case = {"kernel": "embedding", "ids": bits(ids.to(torch.int32).view(torch.float32)), "table": bits(table)}
    return [
        case | {"dims": {"scale": str(scale)}, "y": bits(rows * torch.tensor(scale).to(torch.bfloat16))},
        case | {"dims": {}, "add": bits(add), "y": bits(rows + add)},
    ]


def residual():
    # Products of whole numbers are exact however they are summed up.
    a, b = (torch.randint(-3, 4, shape, generator=generator).to(torch.bfloat16) for shape in [(4, 70), (48, 70)])
    bias, add = draw(1, 48), draw(4, 48, spread=30.0)
    y = torch.nn.functional.linear(a, b, bias[0])
    return [{"kernel": "gemm", "dims": {"form": "nt"}, "a": bits(a), "b": bits(b), "bias": bits(bias), "add": bits(add), "d": bits(y + add)}]


def updates(name, clip, settings):
    weight = torch.nn.Parameter(draw(3, 48, dtype=torch.float32))
    optimizer = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[name]([weight], foreach=False, **settings)
    steps = []
    case = {"kernel": name, "weight": bits(weight)}
    for _ in range(3):
        weight.grad = draw(3, 48, dtype=torch.float32)
        step = {"gradient": bits(weight.grad)}
        if clip:
            norm = torch.nn.utils.clip_grad_norm_([weight], clip, foreach=False)
            step["total"] = bits((norm * norm).reshape(1, 1))
        optimizer.step()
        steps.append(step | {"weight": bits(weight)})
        if name == "adamw":
            state = optimizer.state[weight]
            steps[-1] |= {"mean": bits(state["exp_avg"]), "square": bits(state["exp_avg_sq"])}
    return case | {"clip": clip, "steps": steps}


cases = norm("rms", LlamaRMSNorm(48, eps=1e-5).bfloat16())
cases += norm("gemma-rms", GemmaRMSNorm(48, eps=1e-5).bfloat16())
cases += norm("layer", torch.nn.LayerNorm(48, eps=1e-5).bfloat16())
for name in ["silu", "gelu", "gelu_pytorch_tanh", "relu", "tanh"]:
    cases += gate(name)
cases += embedding() + residual()
adamw = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
print(json.dumps({
    "versions": {"torch": torch.__version__},
    "cases": cases,
    "updates": [updates("adamw", 0, adamw), updates("adamw", 0.5, adamw), updates("sgd", 0, {"lr": 0.1, "weight_decay": 0.01})],
}, indent=1))
