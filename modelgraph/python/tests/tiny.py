"""Small models of several families, with random weights, as folders."""

from __future__ import annotations

import os

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
)
from transformers.utils import logging

logging.disable_progress_bar()
logging.set_verbosity_error()

SMALL = {"vocab_size": 96, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA = {
    **SMALL, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip

CAUSAL = {
    "llama": {**LLAMA, "tie_word_embeddings": False},
    "qwen2": {**LLAMA, "tie_word_embeddings": True},
    "gemma2": {**LLAMA, "sliding_window": 16, "query_pre_attn_scalar": 8},
    "mixtral": {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2},
    "phi3": LLAMA,
    "gpt2": {**SMALL, "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64},
    "opt": {**SMALL, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
            "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    "bloom": {**SMALL, "hidden_size": 32, "n_layer": 4, "n_head": 4},
}  # fmt: skip
OTHERS = {
    "bert": (AutoModelForMaskedLM, {**LLAMA, "type_vocab_size": 2}),
    "t5": (
        AutoModelForSeq2SeqLM,
        {**SMALL, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4, "decoder_start_token_id": 0},
    ),
}


def build(kind: str) -> torch.nn.Module:
    """A model of a family, with the same random weights each time."""
    torch.manual_seed(7)
    loader, fields = OTHERS.get(kind, (AutoModelForCausalLM, CAUSAL.get(kind)))
    return loader.from_config(AutoConfig.for_model(kind, **fields)).eval()


def saved(kind: str, folder: str) -> tuple[torch.nn.Module, str]:
    """The model, and the folder that it is saved to."""
    model, path = build(kind), os.path.join(folder, kind)
    model.save_pretrained(path)
    return model, path


def batch(kind: str, rows: int = 2, length: int = 16) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 96, (rows, length), generator=torch.Generator().manual_seed(11))
    return {"input_ids": ids, "labels": ids}
