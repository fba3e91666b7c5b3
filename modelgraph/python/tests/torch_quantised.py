"""Quantised linear layers in memory count as the data that they store, and their maps run."""

import unittest

import devmap
import tiny
import torch
from torch import nn

BYTES = {"u8": 1, "i8": 1, "i32": 4, "f16": 2, "bf16": 2, "f32": 4, "i64": 8, "f8_e4m3": 1, "float8_e4m3fn": 1}


class Packed(nn.Module):
    """As GPTQ and AWQ store a matrix: buffers alone, and a kernel."""

    def __init__(self, linear, names):
        super().__init__()
        setattr(self, names[0], linear.in_features)
        setattr(self, names[1], linear.out_features)
        rows, columns = linear.in_features, linear.out_features
        self.register_buffer("qweight", torch.zeros(rows // 8, columns, dtype=torch.int32))
        self.register_buffer("qzeros", torch.zeros(1, columns // 8, dtype=torch.int32))
        self.register_buffer("scales", torch.zeros(1, columns, dtype=torch.float16))

    def forward(self, x):
        raise RuntimeError("a kernel of CUDA")


class Hidden(nn.Module):
    """As HQQ does it: scales and zeros in a plain dict."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.W_q = nn.Parameter(torch.zeros(linear.out_features, linear.in_features // 2, dtype=torch.uint8), requires_grad=False)
        self.meta = {"scale": torch.zeros(linear.out_features, 1, dtype=torch.bfloat16), "zero": torch.zeros(linear.out_features, 1, dtype=torch.bfloat16), "nbits": 4}

    def forward(self, x):
        raise RuntimeError("a kernel of CUDA")


class State:
    def __init__(self, absmax, inner=None):
        self.absmax, self.state2 = absmax, inner


class Scaled(nn.Module):
    """As bitsandbytes does it: a parameter with its scales, and theirs, in attributes."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        count = linear.in_features * linear.out_features
        self.weight = nn.Parameter(torch.zeros(count // 2, 1, dtype=torch.uint8), requires_grad=False)
        self.weight.__class__ = type("Params4bit", (nn.Parameter,), {})
        self.weight.quant_state = State(torch.zeros(count // 64, dtype=torch.uint8), State(torch.zeros(1, dtype=torch.float32)))

    def forward(self, x):
        raise RuntimeError("a kernel of CUDA")


def quantised(make):
    net = tiny.build("llama")
    net = type(net)(net.config)
    for part in list(net.modules()):
        for name, child in list(part.named_children()):
            if type(child) is nn.Linear and name != "lm_head":
                setattr(part, name, make(child))
    return net


def stored(net, of):
    """Bytes of a model's tensors, those of its quantised layers by of."""
    seen, total = set(), 0
    for part in net.modules():
        tensors = of(part) if isinstance(part, (Packed, Hidden, Scaled)) else [*part._parameters.values(), *part._buffers.values()]
        for one in tensors:
            if one is not None and id(one) not in seen:
                seen.add(id(one))
                total += one.numel() * one.element_size()
    return total


CASES = {
    "gptq": (lambda one: Packed(one, ("infeatures", "outfeatures")), lambda part: [*part._buffers.values()]),
    "awq": (lambda one: Packed(one, ("in_features", "out_features")), lambda part: [*part._buffers.values()]),
    "hqq": (Hidden, lambda part: [part.W_q, part.meta["scale"], part.meta["zero"]]),
    "bitsandbytes": (Scaled, lambda part: [part.weight, part.weight.quant_state.absmax, part.weight.quant_state.state2.absmax]),
}


class QuantisedTest(unittest.TestCase):
    def test_bytes(self):
        for name, (make, of) in CASES.items():
            with self.subTest(name):
                net = quantised(make)
                model = devmap.export(net)
                size = 0
                for layer in model["layers"]:
                    for tensor in layer.get("params", []) + layer.get("buffers", []):
                        count = 1
                        for side in tensor["shape"]:
                            count *= side
                        size += count * BYTES[tensor["dtype"]]
                self.assertEqual(size, stored(net, of))
                kinds = [layer.get("op", {}).get("kind") for layer in model["layers"]]
                self.assertEqual((kinds.count("attention"), kinds.count("mlp")), (4, 4))
                plan = devmap.plan(net, gpus=2, mode="infer", batch=2, seq=16)
                self.assertEqual(set(plan.device_map.values()), {0, 1})
                self.assertTrue(devmap.verify(net, plan))


if __name__ == "__main__":
    unittest.main()
