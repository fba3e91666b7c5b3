"""Holds the committed PTX to float64, on a GPU; speed.py times it:
python check.py [sanitize=memcheck|racecheck] [bf16:sm_90a] [bf16:sm_80] [fp32:sm_90a]
SEED repeats what was drawn, CASES ends after so many, SHARE=1/4 takes every fourth case from
the second on. With sanitize= that tool of compute-sanitizer looks at our kernels alone,
on sequences of up to 400, in fp32 150; PyTorch is not beside them, whose own products fail under it.

An error is the largest difference to float64. It may be twice that of torch in
the same type, a gradient's three times (FlashAttention's own tests, test_flash_attn.py):
scaled_dot_product_attention, or with a soft cap, which that has not, eager."""

import itertools
import os
import random
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import driver

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
PEERS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]  # cuDNN's refuses some of the shapes as it runs

BEHIND = 0 if "SANITIZED" in os.environ else 130  # rows that are not to be touched: memcheck sees where memory ends


def whole(tensor, dtype):
    """A copy without gaps, at an address that torch's kernels take: contiguous() leaves one row where it is."""
    return tensor.detach().to(dtype, copy=True, memory_format=torch.contiguous_format)


class Case:
    def __init__(self, sequences, seq, heads, kv, dim, causal=True, window=0, cap=0.0, shift=0, splits=0):
        self.sequences, self.seq, self.heads, self.kv, self.dim = sequences, seq, heads, kv, dim
        self.causal, self.window, self.cap, self.shift = causal, window, cap, shift
        # Over how many of the heads that share keys attention_dkv is spread.
        self.splits = splits or random.choice([count for count in range(1, heads // kv + 1) if heads // kv % count == 0])

    def __str__(self):
        return f"{self.sequences}x{self.seq} heads {self.heads}/{self.kv}x{self.dim} causal {int(self.causal)} window {self.window} cap {self.cap} splits {self.splits}"

    def split(self, tensor, heads):
        return tensor.reshape(self.sequences, self.seq, heads, self.dim).transpose(1, 2)

    def seen(self):
        i = torch.arange(self.seq, device="cuda")
        seen = torch.ones(self.seq, self.seq, dtype=torch.bool, device="cuda")
        if self.causal:
            seen &= i[None, :] <= i[:, None]
        if self.window:
            seen &= i[:, None] - i[None, :] < self.window
        return seen

    def eager(self, q, k, v):
        """y and lse, all scores at once."""
        group = self.heads // self.kv
        scores = self.split(q, self.heads) @ self.split(k, self.kv).repeat_interleave(group, 1).transpose(2, 3) * self.dim**-0.5
        if self.cap:
            scores = self.cap * torch.tanh(scores / self.cap)
        scores = scores.masked_fill(~self.seen(), float("-inf"))
        y = scores.softmax(-1) @ self.split(v, self.kv).repeat_interleave(group, 1)
        return y.transpose(1, 2).reshape(q.shape), scores.logsumexp(-1).transpose(1, 2).reshape(-1, self.heads)

    def torchs(self, q, k, v):
        if self.cap:
            return self.eager(q, k, v)[0]
        group = self.heads // self.kv
        parts = self.split(q, self.heads), self.split(k, self.kv).repeat_interleave(group, 1), self.split(v, self.kv).repeat_interleave(group, 1)
        if self.window:
            y = F.scaled_dot_product_attention(*parts, attn_mask=self.seen())
        else:
            y = F.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return y.transpose(1, 2).reshape(q.shape)

    def gradients(self, function, q, k, v, dy, dtype):
        leaves = [whole(tensor, dtype).requires_grad_() for tensor in (q, k, v)]
        y = function(*leaves)
        return y.detach(), *torch.autograd.grad(y, leaves, whole(dy, dtype))


def inside(case, dtype, *widths):
    """Matrices side by side in one tensor that is NaN elsewhere: columns before
    and behind them, and rows behind the last."""
    pad = 8 + case.shift
    whole = torch.full((case.sequences * case.seq + BEHIND, pad + sum(widths) + 8), float("nan"), dtype=dtype, device="cuda")
    parts, at = [], pad
    for width in widths:
        parts.append(whole[: case.sequences * case.seq, at : at + width])
        at += width
    return whole, parts


def outside(whole, parts):
    """Fails where something was written beside the parts, or not in them."""
    bad = any(part.isnan().any().item() for part in parts)
    copy = whole.clone()
    width = sum(part.shape[1] for part in parts)
    first = parts[0].storage_offset()
    copy[: parts[0].shape[0], first : first + width] = float("nan")
    return bad or not copy.isnan().all().item()


def deltas(case, y, dy):
    """Σ y·dy of each row and head, which another kernel makes (internal/source)."""
    return (y.double() * dy.double()).reshape(-1, case.heads, case.dim).sum(-1)


def ours(case, library, dtype, q, k, v, dy):
    """Forward and backward into poisoned tensors: y, dq, dk, dv, lse, and whether
    they kept to their places."""
    width, shared = case.heads * case.dim, case.kv * case.dim
    run = driver.Attention(library, case.sequences, case.seq, case.heads, case.kv, case.dim, case.causal, case.window, case.cap)
    outputs, (y,) = inside(case, dtype, width)
    lse, delta = (torch.full((case.sequences * case.seq + BEHIND, case.heads), float("nan"), device="cuda") for _ in range(2))
    used = run.run("attention", q=q, k=k, v=v, y=y, lse=lse)
    delta[: case.sequences * case.seq] = deltas(case, y, dy)
    gradients, (dq, dk, dv) = inside(case, dtype, width, shared, shared)
    used += run.run("attention_backward", splits=case.splits, q=q, k=k, v=v, dy=dy, lse=lse, delta=delta, dq=dq, dk=dk, dv=dv)
    rows = case.sequences * case.seq
    bad = outside(outputs, [y]) or outside(gradients, [dq, dk, dv])
    bad = bad or any(line[:rows].isnan().any().item() or not line[rows:].isnan().all().item() for line in (lse, delta))
    alone, (again,) = inside(case, dtype, width)
    run.run("attention", q=q, k=k, v=v, y=again)  # no lse, as in inference
    bad = bad or not torch.equal(y, again)
    return (y, dq, dk, dv), lse[:rows], used, bad


def drawn(case, dtype):
    """q, k, v and dy."""
    width, shared = case.heads * case.dim, case.kv * case.dim
    _, (q, k, v) = inside(case, dtype, width, shared, shared)
    _, (dy,) = inside(case, dtype, width)
    for tensor in (q, k, v, dy):
        tensor.copy_(torch.randn(tensor.shape, device="cuda"))
    if case.cap:
        q.mul_(3)  # so that the cap bends scores
    return q, k, v, dy


def looked_at(case, library, name):
    """Under compute-sanitizer: the kernels keep to their places, and it has the word on the rest."""
    case.sequences, case.seq = 1, min(case.seq, 400 if name == "bf16" else 150)
    *_, used, bad = ours(case, library, TYPES[name], *drawn(case, TYPES[name]))
    print(f"{'FAIL' if bad else 'ok':4s} {name} {case}: {' '.join(kernel.file for kernel in used)}", flush=True)
    return not bad


def judge(case, library, name):
    dtype = TYPES[name]
    q, k, v, dy = drawn(case, dtype)
    made, lse, used, bad = ours(case, library, dtype, q, k, v, dy)
    truth = case.gradients(lambda *all: case.eager(*all)[0], q, k, v, dy, torch.float64)
    logs = case.eager(q.double(), k.double(), v.double())[1]
    with sdpa_kernel(PEERS):
        peers = case.gradients(case.torchs, q, k, v, dy, dtype)
    said = ["not written, or written beside"] if bad else []
    ratios = []
    for role, mine, right, peer, factor in zip(("y", "dq", "dk", "dv"), made, truth, peers, (2, 3, 3, 3)):
        error, own = ((tensor.double() - right).abs().max().item() for tensor in (mine, peer))
        # Where torch is exact (a query that sees one key has no gradient), fp32's rounding is let pass.
        floor = 4 * torch.finfo(torch.float32).eps * max(1.0, right.abs().max().item())
        if role in ("dq", "dk") and 1 in (case.window, case.seq):  # all of it is what rounds off v·dy - delta
            floor *= case.dim**0.5 * max(q.abs().max().item(), k.abs().max().item())
        if role == "dv" and 1 in (case.window, case.seq):  # a weight of 1, made again from a score and its logarithm
            floor *= max(1.0, logs.abs().max().item())
        ratios.append(error / max(own, floor))
        if not error <= factor * own + floor:
            said.append(f"{role} is off by {error:.2e}, torch by {own:.2e}")
    error = ((lse - logs).abs() / (1 + logs.abs())).max().item()
    if not error <= 5e-6:  # a few units of fp32's last place, of scores that are larger than their logarithm
        said.append(f"lse is off by {error:.1e}")
    second, *_ = ours(case, library, dtype, q, k, v, dy)
    if not all(torch.equal(one, other) for one, other in zip(made, second)):
        said.append("a second run has other bits")
    if case.sequences > 1:
        alone = Case(1, case.seq, case.heads, case.kv, case.dim, case.causal, case.window, case.cap, case.shift, case.splits)
        last = slice((case.sequences - 1) * case.seq, None)
        third, *_ = ours(alone, library, dtype, q[last], k[last], v[last], dy[last])
        if not all(torch.equal(one[last], other) for one, other in zip(made, third)):
            said.append("the last sequence alone has other bits")
    forms = "/".join(f"{kernel.width}{kernel.form[:2]}{kernel.target[3:]}" for kernel in used)
    print(f"{'FAIL' if said else 'ok':4s} {name} {case}: {forms}, error/torch's " + " ".join(f"{ratio:.2f}" for ratio in ratios) + f", lse {error:.1e}", "; ".join(said), flush=True)
    return not said


def cases(drawn):
    for dim, heads, kv in ((64, 4, 2), (128, 4, 1), (256, 2, 2), (80, 3, 3), (96, 4, 2), (192, 2, 1), (40, 4, 2), (8, 2, 1), (33, 2, 1), (5, 3, 1), (101, 2, 1), (250, 2, 1)):
        yield Case(2, 321, heads, kv, dim)
        yield Case(1, 129, heads, kv, dim, causal=False)
        yield Case(2, 200, heads, kv, dim, window=64, cap=5.0)
    for dim in (64, 80, 96, 128, 256):
        for seq, window in ((1, 0), (63, 3), (64, 1), (65, 200), (1000, 130), (777, 1)):
            yield Case(2, seq, 4, 2, dim, window=window)
        yield Case(1, 512, 8, 1, dim)
        yield Case(2, 257, 4, 4, dim, causal=False, cap=1.5)
        yield Case(2, 257, 4, 2, dim, causal=False, window=70)
        yield Case(1, 300, 4, 2, dim, shift=1)  # rows at odd addresses
        yield Case(1, 2048, 2, 1, dim, cap=50.0)
    for _ in range(drawn):
        kv, group = random.randint(1, 3), random.randint(1, 4)
        yield Case(random.randint(1, 3), random.randint(1, 500), kv * group, kv, random.choice((16, 32, 64, 72, 80, 96, 128, 160, 256, random.randint(1, 256))),
                   random.random() < 0.7, random.choice((0, 0, 1, random.randint(1, 300))), random.choice((0.0, 0.0, 2.0, 30.0)), random.choice((0, 0, 8, 3)))


def accuracy(sets):
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print("seed", seed)
    failed, count = 0, 0
    for name, target in (one.split(":") for one in sets):
        random.seed(seed)
        torch.manual_seed(seed)
        library = driver.Library(HERE, target)
        first, step = (int(number) for number in os.environ.get("SHARE", "0/1").split("/"))
        for case in itertools.islice(cases(30), first, int(os.environ.get("CASES", "1000")), step):
            failed += not (looked_at if "SANITIZED" in os.environ else judge)(case, library, name)
            count += 1
    print(f"{failed} of {count} cases failed")
    return failed == 0


def sanitized(tool, arguments):
    """Runs this script under compute-sanitizer."""
    os.environ.update(SANITIZED=tool, **({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if tool == "memcheck" else {}))  # each tensor is memory of its own
    os.execvp("compute-sanitizer", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--kernel-regex", "kns=attention", sys.executable, os.path.abspath(__file__), *arguments])


if __name__ == "__main__":
    for word in sys.argv[1:]:
        if word.startswith("sanitize="):
            sanitized(word.removeprefix("sanitize="), [other for other in sys.argv[1:] if ":" in other])
    sets = [word for word in sys.argv[1:] if ":" in word] or ["bf16:sm_90a", "bf16:sm_80", "fp32:sm_90a"]
    sys.exit(0 if accuracy(sets) else 1)
