"""Writes what Transformers computes of a small model of every family, for a test of devmap that has no Python.

usage: goldens.py FOLDER

A file a family: `config`, `ids`, `logits` (of the first `batch` lines), `hidden` (its norm), `losses` of ten steps of
AdamW (rate 1e-3, decay 0.01), `gradients` of the first step [norm, dot product with the values below of NAME.gradient],
`tokens` (greedy, after the first line, rotated as when all are there), and `tensors`: name -> [shape, shift, scale].
Value i of a tensor is shift + scale * (h / 2^23 - 1), rounded to fp32, where h is the upper 24 bits of splitmix64's
output for the state crc32(name) * 2^32 + i.
"""

import json
import os
import sys
import zlib

import numpy
import torch
from safetensors.torch import load_file, save_file

import engine
import models
import training

SEQ, BATCH, NEW = 9, 2, 6
BASE = {
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "hidden_size": 20, "intermediate_size": 28, "num_hidden_layers": 2, "vocab_size": 37,
    "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}
SQUARE = BASE | {"hidden_size": 24}
ROPE = {"rope_theta": 500.0}
CONFIGS = {
    "llama": BASE | {
        "attention_bias": True, "mlp_bias": True, "pad_token_id": 5,
        "rope_parameters": ROPE | {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
    },
    "mistral": BASE | {"sliding_window": 4, "rope_parameters": ROPE | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}},
    "qwen2": SQUARE | {
        "head_dim": 6, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "tie_word_embeddings": True,
        "rope_parameters": ROPE | {"rope_type": "linear", "factor": 2.0},
    },
    "qwen3": BASE | {"max_position_embeddings": 6, "rope_parameters": ROPE | {"rope_type": "dynamic", "factor": 2.0}},
    "gemma": BASE | {"tie_word_embeddings": True, "hidden_act": "gelu_pytorch_tanh", "rope_parameters": ROPE | {"rope_type": "default"}, "pad_token_id": 0},
    "gemma2": BASE | {
        "tie_word_embeddings": True, "sliding_window": 4, "query_pre_attn_scalar": 10, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
        "rope_parameters": ROPE | {"rope_type": "default"},
    },
    "gemma3_text": BASE | {
        "tie_word_embeddings": True, "sliding_window": 4, "query_pre_attn_scalar": 10, "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"full_attention": ROPE | {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}},
    },
    "phi3": BASE | {
        "hidden_size": 32, "pad_token_id": 3, "sliding_window": 5, "original_max_position_embeddings": 64,
        "rope_parameters": ROPE | {"rope_type": "default", "partial_rotary_factor": 0.5},
    },
    "gpt2": {
        "n_embd": 20, "n_head": 4, "n_layer": 2, "vocab_size": 37, "n_positions": 16, "scale_attn_by_inverse_layer_idx": True, "bos_token_id": None,
        "eos_token_id": None, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    },
    "bert": {
        "hidden_size": 20, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 28, "vocab_size": 37, "max_position_embeddings": 16,
        "type_vocab_size": 2,
    },
}
del CONFIGS["phi3"]["head_dim"]


def values(name, count):
    """Numbers from -1 to 1 that a name stands for."""
    with numpy.errstate(over="ignore"):
        mixed = numpy.arange(count, dtype=numpy.uint64) + (numpy.uint64(zlib.crc32(name.encode())) << numpy.uint64(32))
        mixed = mixed + numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> numpy.uint64(31)
    return (mixed >> numpy.uint64(40)).astype(numpy.float64) / (1 << 23) - 1


def scaled(name, tensor):
    """Shift and scale of a tensor that was initialised: norms stay near what they were."""
    if tensor.dim() == 1:
        return (0.0, 0.125) if name.endswith("bias") else (float(tensor[0]), 0.25)
    return 0.0, 0.125 if "embed" in name or "wte" in name or "wpe" in name else 0.5


def golden(family, folder):
    config = models.config_of({"model_type": family} | CONFIGS[family])
    models.saved(config, 1, folder)
    path = os.path.join(folder, "model.safetensors")
    initial = models.kind(config).from_config(config, dtype=torch.float32).state_dict()
    tensors, stored = {}, load_file(path)
    for name, tensor in stored.items():
        shift, scale = scaled(name, initial[name])
        tensors[name] = [list(tensor.shape), shift, scale]
        stored[name] = torch.from_numpy((shift + scale * values(name, tensor.numel())).astype(numpy.float32)).reshape(tensor.shape)
    save_file(stored, path, {"format": "pt"})
    model = models.loaded(folder)
    ids = models.drawn_ids(12, 5, SEQ, config.vocab_size)
    logits, hidden = models.forward(model, ids[:BATCH])
    with open(os.path.join(folder, "config.json")) as file:
        saved = json.load(file)
    out = {
        "made_with": f"{models.versions()}, CPU, fp32, eager attention: python cmd/devmap/internal/conformance/python/goldens.py", "config": saved,
        "tensors": tensors, "batch": BATCH, "ids": ids.tolist(), "logits": short(logits.flatten().tolist()), "hidden": short([hidden.double().norm().item()])[0],
    }
    if family == "bert":
        return out
    gradients = training.gradients_of(model, ids[:BATCH])
    out["gradients"] = {
        name: short([gradient.double().norm().item(), float(numpy.dot(gradient.double().flatten().numpy(), values(name + ".gradient", gradient.numel())))])
        for name, gradient in gradients.items()
    }
    _, _, make, _ = training.WAYS[0]
    out["losses"] = short(training.trained(models.loaded(folder), ids, BATCH, training.STEPS, make, 0))
    line = ids[:1].tolist()
    models.forward(model, numpy.zeros((1, SEQ + NEW), dtype=int))  # a dynamic rotation is that of the longest so far
    for _ in range(NEW):
        line[0].append(int(models.forward(model, line)[0][0, -1].argmax()))
    out["tokens"] = line[0][SEQ:]
    return out


def short(numbers):
    return [float(f"{number:.9g}") for number in numbers]


def main():
    for family in CONFIGS:
        with engine.temporary() as folder, open(os.path.join(sys.argv[1], family + ".json"), "w") as file:
            found = golden(family, folder)
            file.write("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()) + "\n}\n")
        print(family, len(found["logits"]), "logits", found.get("losses", [None])[-1], found.get("tokens"))


if __name__ == "__main__":
    main()
