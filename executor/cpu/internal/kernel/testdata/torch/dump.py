"""Writes kernels.json: what torch and Transformers make of small random inputs
on a processor, for the tests of package kernel. Modules' own code is called, so
that values are rounded where theirs are.

    python dump.py > kernels.json      # torch 2.11.0, transformers 5.17.0
"""

import json

import torch
import transformers
from torch.nn.functional import scaled_dot_product_attention
from transformers.loss.loss_utils import ForCausalLMLoss
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

torch.manual_seed(12)
BF16, F32 = torch.bfloat16, torch.float32
NAMES = {BF16: "BF16", F32: "F32", torch.int64: "I32"}
cases = []


def normal(*shape, dtype=F32):
    return torch.randn(*shape).to(dtype)


def numbers(x):
    """As few digits as fp32 needs to be read back."""
    return [float(f"{value:.9g}") for value in x.flatten().tolist()]


def case(kernel, dims, bound, **operands):
    """operands by role: (mode, before, after), each a matrix or None."""
    listed = []
    for role, (mode, before, after) in operands.items():
        like = before if after is None else after
        listed.append({
            "role": role, "mode": mode, "dtype": NAMES[like.dtype], "rows": like.shape[0], "columns": like.shape[1],
            "before": None if before is None else numbers(before),
            "after": None if after is None else numbers(after),
        })
    cases.append({"kernel": kernel, "dims": dims, "bound": bound, "operands": listed})


def rows(x):
    """[batch, heads, seq, dim] as rows with the heads side by side."""
    return x.detach().transpose(1, 2).reshape(x.shape[0] * x.shape[2], -1)


def rope(dtype, bound):
    config = LlamaConfig(hidden_size=16, num_attention_heads=2, head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    q, k = normal(2, 2, 9, 8, dtype=dtype).requires_grad_(), normal(2, 1, 9, 8, dtype=dtype).requires_grad_()
    cos, sin = LlamaRotaryEmbedding(config)(q, torch.arange(9)[None])
    yq, yk = apply_rotary_pos_emb(q, k, cos, sin)
    dims = "rows=18 heads=2 kv=1 dim=8 seq=9 rope=default width=8 base=10000"
    case("rope", dims, bound, q=("+", rows(q), rows(yq)), k=("+", rows(k), rows(yk)))
    dq, dk = normal(*q.shape, dtype=dtype), normal(*k.shape, dtype=dtype)
    torch.autograd.backward([yq, yk], [dq, dk])
    case("rope_backward", dims, bound, dq=("+", rows(dq), rows(q.grad)), dk=("+", rows(dk), rows(k.grad)))


def qknorm(style, module, bound):
    q, k, qnorm, knorm = normal(5, 16, dtype=BF16), normal(5, 8, dtype=BF16), module(8, 1e-6).to(BF16), module(8, 1e-6).to(BF16)
    with torch.no_grad():
        qnorm.weight.copy_(normal(8)), knorm.weight.copy_(normal(8))
        yq, yk = qnorm(q.view(5, 2, 8)).view(5, 16), knorm(k.view(5, 1, 8)).view(5, 8)
    case("qknorm", f"rows=5 heads=2 kv=1 dim=8 seq=5 style={style} epsilon=1e-06", bound, q=(" ", q, None), k=(" ", k, None),
         qweight=(" ", qnorm.weight.detach()[None], None), kweight=(" ", knorm.weight.detach()[None], None), yq=(">", None, yq), yk=(">", None, yk))


def attention(dtype, window, cap, bound, learned):
    q, k, v = (normal(1, n, 9, 4, dtype=dtype).requires_grad_() for n in (4, 2, 2))
    order = torch.arange(9)
    seen = order[None] <= order[:, None]
    dims = "sequences=1 heads=4 kv=2 dim=4 seq=9 causal=1"
    if window:
        seen &= order[:, None] - order[None] < window
        dims += f" window={window}"
    if cap:
        module = type("", (), {"num_key_value_groups": 2, "training": False})
        mask = torch.zeros(9, 9, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
        y = eager_attention_forward(module, q, k, v, mask[None, None], scaling=0.25, softcap=cap)[0].transpose(1, 2)
        dims += f" cap={cap}"
    else:
        y = scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=0.25, enable_gqa=True)
    dims += " scale=0.25"
    case("attention", dims, bound, q=(" ", rows(q), None), k=(" ", rows(k), None), v=(" ", rows(v), None), y=(">", None, rows(y)))
    if not learned:
        return
    dy = normal(*y.shape, dtype=dtype)
    y.backward(dy)
    scores = q.detach() @ k.detach().repeat_interleave(2, 1).transpose(2, 3) * 0.25
    if cap:
        scores = torch.tanh(scores / cap) * cap
    lse = scores.masked_fill(~seen, -torch.inf).logsumexp(3, keepdim=True)
    delta = (y.detach() * dy).sum(3, keepdim=True)
    case("attention_delta", "rows=9 heads=4 dim=4", bound, y=(" ", rows(y), None), dy=(" ", rows(dy), None), delta=(">", None, rows(delta)))
    given = dict(q=(" ", rows(q), None), k=(" ", rows(k), None), v=(" ", rows(v), None), dy=(" ", rows(dy), None), lse=(" ", rows(lse), None), delta=(" ", rows(delta), None))
    case("attention_backward", dims, bound, **given, dq=(">", None, rows(q.grad)), dk=(">", None, rows(k.grad)), dv=(">", None, rows(v.grad)))


def head():
    x = normal(4, 33, dtype=BF16) * 20
    y = x / 30.0  # Gemma2ForCausalLM.forward
    y = torch.tanh(y)
    y = y * 30.0
    case("softcap", "rows=4 columns=33 cap=30", 0, x=("+", x, y))
    tied = torch.tensor([[1.0, 3, 3, 2], [-1, -1, -1, -1], [0, 1, 2, 2]])
    case("argmax", "rows=3 columns=4", 0, x=(" ", tied, None), y=(">", None, tied.argmax(1, keepdim=True)))
    logits, ids = (normal(2, 6, 11) * 2).requires_grad_(), torch.randint(11, (2, 6))
    loss = ForCausalLMLoss(logits, ids, vocab_size=11)
    (loss / 3).backward()
    lse = logits.detach().logsumexp(2, keepdim=True).view(12, 1)
    label = torch.cat([logits.detach()[:, :-1].gather(2, ids[:, 1:, None]), torch.zeros(2, 1, 1)], 1).view(12, 1)
    sums = torch.cat([lse, torch.ones(12, 1), label], 1)
    case("loss", "sequences=2 seq=6", 1e-6, sums=(" ", sums, None), labels=(" ", ids, None), lse=(">", None, lse), loss=(">", None, loss.detach().view(1, 1)))
    case("loss_backward", "sequences=2 seq=6 first=0 columns=11 micro_batches=3", 1e-6, x=("+", logits.detach().view(12, 11), logits.grad.view(12, 11)),
         lse=(" ", lse, None), labels=(" ", ids, None), counted=(" ", torch.tensor([[10.0]]), None))


rope(F32, 1e-6)
rope(BF16, 0)
qknorm("rms", Qwen3RMSNorm, 0)
qknorm("gemma-rms", Gemma3RMSNorm, 0)
for window, cap in [(0, 0), (3, 0), (3, 2), (0, 50)]:
    attention(F32, window, cap, 1e-6, window == 3)
attention(BF16, 0, 0, 1e-2, False)
head()
print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "cases": cases}, separators=(",", ":")))
