"""Small configurations of every family, drawn: what can differ between two models of a family does."""

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "gpt2", "bert")
TRAINED = tuple(family for family in FAMILIES if family != "bert")


def rope(rng, seq, kinds=("default", "linear", "dynamic", "llama3", "yarn")):
    """RoPE's parameters; "dynamic" stretches only beyond max_position_embeddings."""
    kind = rng.choice(kinds)
    out = {"rope_type": kind, "rope_theta": rng.choice([100.0, 1e4, 5e5])}
    if kind != "default":
        out["factor"] = rng.choice([1.5, 2.0, 4.0, 8.0])
    if kind == "llama3":
        out |= {"low_freq_factor": 1.0, "high_freq_factor": rng.choice([2.0, 4.0]), "original_max_position_embeddings": rng.choice([8, 32, 64])}
    if kind == "yarn":
        out["original_max_position_embeddings"] = rng.choice([8, 16, 64])
        out |= rng.choice([{}, {"attention_factor": 1.2}, {"mscale": 0.7, "mscale_all_dim": 1.0}, {"truncate": False}, {"beta_fast": 16.0, "beta_slow": 2.0}])
    return out


def sizes(rng, square):
    """Heads, widths, layers. A square model's heads are as wide as the model together."""
    groups, queries, head_dim = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([6, 8, 12, 16])
    heads = groups * queries
    return {
        "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": head_dim,
        "hidden_size": heads * (head_dim if square else -(-rng.choice([20, 30, 50]) // heads)),
        "intermediate_size": rng.choice([36, 50, 75, 128]), "num_hidden_layers": rng.choice([2, 3, 4, 5]),
        "vocab_size": rng.choice([61, 97, 130, 257]),
    }


def decoder(rng, seq, act="hidden_act", norm="rms_norm_eps", square=False, **over):
    out = sizes(rng, square)
    out |= {
        act: rng.choice(["silu", "gelu", "gelu_pytorch_tanh", "relu"]), norm: rng.choice([1e-6, 1e-5, 1e-3]),
        "tie_word_embeddings": rng.random() < 0.5, "max_position_embeddings": rng.choice([seq // 2, seq, 4 * seq]),
        "rope_parameters": rope(rng, seq), "bos_token_id": None, "eos_token_id": None,
        "pad_token_id": rng.choice([None, 0, out["vocab_size"] - 1]), "attention_dropout": 0.0,
    }
    return out | over


def window(rng, seq):
    return rng.randrange(2, seq)


def layer_types(rng, layers):
    return [rng.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


def llama(rng, seq):
    return decoder(rng, seq, attention_bias=rng.random() < 0.5, mlp_bias=rng.random() < 0.5)


def mistral(rng, seq):
    return decoder(rng, seq, sliding_window=rng.choice([None, window(rng, seq)]))


def qwen2(rng, seq):
    out = decoder(rng, seq, square=True, use_sliding_window=rng.random() < 0.6, sliding_window=window(rng, seq))
    del out["head_dim"]
    return out | {"max_window_layers": rng.randrange(out["num_hidden_layers"] + 1)}


def qwen3(rng, seq):
    out = decoder(rng, seq, attention_bias=rng.random() < 0.5, use_sliding_window=rng.random() < 0.5, sliding_window=window(rng, seq))
    return out | {"max_window_layers": rng.randrange(out["num_hidden_layers"] + 1)}


def gemma(rng, seq):
    out = decoder(rng, seq, act="hidden_activation")
    return out | {"hidden_act": out["hidden_activation"]}


def gemma2(rng, seq):
    out = decoder(rng, seq, act="hidden_activation", sliding_window=window(rng, seq), query_pre_attn_scalar=rng.choice([8, 24, 100]),
                  attn_logit_softcapping=rng.choice([None, 2.0, 50.0]), final_logit_softcapping=rng.choice([None, 3.0, 30.0]))
    return out | ({"layer_types": layer_types(rng, out["num_hidden_layers"])} if rng.random() < 0.5 else {})


def gemma3_text(rng, seq):
    out = decoder(rng, seq, act="hidden_activation", sliding_window=window(rng, seq), query_pre_attn_scalar=rng.choice([8, 24, 100]),
                  final_logit_softcapping=rng.choice([None, 3.0]))
    return out | {
        "rope_parameters": {"full_attention": rope(rng, seq), "sliding_attention": rope(rng, seq, ("default", "linear"))},
        "layer_types": layer_types(rng, out["num_hidden_layers"]),
    }


def phi3(rng, seq):
    out = decoder(rng, seq, square=True, sliding_window=rng.choice([None, window(rng, seq)]), pad_token_id=3)
    turned = {"partial_rotary_factor": 0.5} if out["head_dim"] % 4 == 0 and rng.random() < 0.5 else {}
    del out["head_dim"]
    return out | {"rope_parameters": rope(rng, seq, ("default",)) | turned, "original_max_position_embeddings": 4 * seq, "max_position_embeddings": 4 * seq}


def gpt2(rng, seq):
    out = sizes(rng, square=True)
    return {
        "n_embd": out["hidden_size"], "n_head": out["num_attention_heads"], "n_layer": out["num_hidden_layers"], "vocab_size": out["vocab_size"],
        "n_inner": rng.choice([None, 50]), "n_positions": rng.choice([seq, seq + 40]), "activation_function": rng.choice(["gelu_new", "gelu", "relu"]),
        "layer_norm_epsilon": rng.choice([1e-5, 1e-3]), "scale_attn_weights": rng.random() < 0.7, "scale_attn_by_inverse_layer_idx": rng.random() < 0.4,
        "tie_word_embeddings": rng.random() < 0.7, "bos_token_id": None, "eos_token_id": None, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }


def bert(rng, seq):
    out = sizes(rng, square=True)
    del out["num_key_value_heads"], out["head_dim"]
    return out | {
        "hidden_act": rng.choice(["gelu", "gelu_new", "relu"]), "layer_norm_eps": rng.choice([1e-12, 1e-5]), "max_position_embeddings": seq + 10,
        "type_vocab_size": rng.choice([1, 2]), "pad_token_id": 0,
    }


def drawn(family, rng, seq):
    """Fields of a config."""
    return {"model_type": family} | globals()[family](rng, seq)


def case(family, rng, index):
    """Fields of a config, and tokens a sequence. Every fourth is beyond what kernels take at once: queries, the rows
    and the depth of a product, a part of the vocabulary."""
    if index % 4 != 3:
        seq = rng.randrange(6, 40)
        return drawn(family, rng, seq), seq
    seq = rng.randrange(65, 160)
    fields = drawn(family, rng, seq) | {"vocab_size": rng.choice([8203, 16500]), "n_inner" if family == "gpt2" else "intermediate_size": 700}
    return smooth(fields), seq  # of so many gates one lies within fp32's rounding of ReLU's kink


def smooth(fields):
    """Without ReLU: on which side of its kink a gate lies that is within rounding of it is no fault of who computes it."""
    return {name: "gelu_new" if value == "relu" else value for name, value in fields.items()}
