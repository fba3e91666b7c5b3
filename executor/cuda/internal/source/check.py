"""Holds every kernel to float64, on a machine with a GPU and torch.

    python3 check.py [--seed N] [--time] [--sanitize memcheck|racecheck] [PART…]

Fresh random data, odd sizes, rows that are parts of wider ones, at addresses
that are multiples of 16 bytes and not; outputs are poisoned before, and so is
all around them, which must stay. What sums is run twice and must give the same
bits. With --time kernels that only move memory are timed beside a copy. With
--sanitize it runs under that tool of compute-sanitizer, which looks at our kernels
alone, with a third of the cases, drawn anew each time; then nothing is compared,
which under it takes minutes, and for memcheck each matrix is memory of its own.
"""

import ctypes
import math
import os
import random
import re
import sys
import numpy
import torch
from launch import Call, HERE, cuda, held

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else int.from_bytes(os.urandom(4), "little")
torch.manual_seed(SEED)
random.seed(SEED)
BF16, F32, I32, F64 = torch.bfloat16, torch.float32, torch.int32, torch.float64
LIMIT = {BF16: 1e-2, F32: 1e-6}
SANITIZED = os.environ.get("SANITIZED", "")  # by which tool
areas, worst, failed = [], {}, []


class Own:
    """Memory of its own, as many bytes as there are, which torch's allocator rounds up and shares out."""

    def __init__(self, size):
        self.address = ctypes.c_uint64()
        held(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(size)))
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (self.address.value, False), "version": 3}

    def __del__(self):
        cuda.cuMemFree_v2(self.address)


def area(rows, columns, dtype, how, values=None):
    """A poisoned matrix inside a wider one; how: tight, part (wide rows) or odd. Under
    memcheck the tool is what looks behind it: there is no row more."""
    before, behind = {"tight": (0, 0), "part": (8, 24), "odd": (3, 2)}[how]
    more = 0 if SANITIZED == "memcheck" else 1
    shape = rows + 2 * more, before + columns + behind
    if SANITIZED == "memcheck":
        whole = torch.as_tensor(Own(math.prod(shape) * dtype.itemsize), device="cuda").view(dtype).view(shape)
    else:
        whole = torch.empty(shape, dtype=dtype, device="cuda")
    whole.view(torch.uint8).fill_(0xFF)
    part = whole[more:rows + more, before:before + columns]
    areas.append((whole, part))
    if values is not None:
        part.copy_(values)
    return part


def rand(rows, columns, dtype, how, scale=1.0):
    return area(rows, columns, dtype, how, torch.randn(rows, columns, device="cuda") * scale)


def ints(rows, columns, high, low=0):
    return area(rows, columns, I32, "tight", torch.randint(low, high, (rows, columns), device="cuda"))


def rows(columns, dtype, how, *values):
    return area(len(values), columns, dtype, how, torch.stack(values))


def untouched():
    """Poison around matrices is still there."""
    for whole, part in areas:
        mask = torch.ones(whole.shape, dtype=torch.bool, device="cuda")
        mask[1:-1, part.storage_offset() % whole.shape[1]:part.storage_offset() % whole.shape[1] + part.shape[1]] = False
        raw = whole.view(torch.int16 if whole.dtype == BF16 else I32)
        if not bool((raw[mask] == -1).all()):
            return False
    return True


def check(name, label, want, got, dtype, exact=False):
    """‖got − want‖/‖want‖ of each output against its type's bound."""
    torch.cuda.synchronize()
    for role in () if SANITIZED else want:
        reference, made = want[role].double(), got[role].double()
        if exact:
            error = 0.0 if torch.equal(got[role], want[role].to(got[role].dtype)) else 1.0
        else:
            norm = reference.norm().item()
            error = (made - reference).norm().item() / norm if norm else made.norm().item()
        bound = LIMIT[got[role].dtype] if got[role].dtype in LIMIT else 0
        if got[role].dtype == F32:
            bound = LIMIT[dtype]  # an fp32 sum of bf16 values that were rounded on the way
        key = (name, str(dtype)[6:], role)
        worst[key] = max(worst.get(key, 0), error)
        if not error <= bound or not untouched():
            failed.append(f"{name} {label} {role}: error {error:.3g}, bound {bound:g}, around it {'untouched' if untouched() else 'WRITTEN'}")
    if SANITIZED:
        worst[name, str(dtype)[6:], "run"] = 0
    areas.clear()


def each(sizes):
    hows = ("tight", "part", "odd")
    for size in sizes:
        for dtype in (BF16, F32):
            for how in random.sample(hows, 1) if SANITIZED else hows:
                yield (*size, dtype, how)


def sanitized(tool, arguments):
    """Runs this script under compute-sanitizer, told which kernels are ours."""
    entries = [entry for path in sorted(HERE.glob("*.ptx")) for entry in re.findall(r"\.entry (\w+)", path.read_text())]
    filters = [word for entry in entries for word in ("--kernel-regex", f"kns={entry}")]
    os.environ.update(SANITIZED=tool)
    os.execvp("compute-sanitizer", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *filters, sys.executable, __file__, "--seed", str(SEED), *arguments])


def norms():
    for count, columns, dtype, how in each([(5, 61), (37, 768), (1000, 2048), (3, 8192), (300, 40), (2, 16384), (131, 8328), (2, 18432)]):
        for style in ("rms", "gemma-rms", "layer"):
            x, w, add = area(count, columns, dtype, how, 1 + 2 * torch.randn(count, columns, device="cuda")), rand(1, columns, dtype, how), rand(count, columns, dtype, how)
            bias = rand(1, columns, dtype, how) if style == "layer" else None
            layer, dims = style == "layer", {"style": style, "epsilon": 1e-5}
            wide, weight = x.double(), w.double() + (style == "gemma-rms")
            mean = wide.mean(1, keepdim=True) if layer else torch.zeros(count, 1, device="cuda", dtype=F64)
            inverse = ((wide - mean).square().mean(1, keepdim=True) + 1e-5).rsqrt()
            n = (wide - mean) * inverse
            want = n * weight + (bias.double() if layer else 0)
            rstd, center = area(count, 1, F32, "tight"), area(count, 1, F32, "tight") if layer else None
            y = area(count, columns, dtype, how)
            given = {"x": x, "weight": w, "bias": bias, "rstd": rstd, "mean": center}
            Call("norm", dims, {**given, "y": y}).run()
            outs = {"y": want, "rstd": inverse} | ({"mean": mean} if layer else {})
            first = y.clone()
            kept = areas[:]
            check("norm", f"{style} {count}x{columns} {how}", outs, {"y": y, "rstd": rstd, "mean": center}, dtype)
            areas.extend(kept)
            y2 = area(count, columns, dtype, how)
            Call("norm_again", dims, {**given, "y": y2}).run()
            check("norm_again", f"{style} {count}x{columns} {how}", {"y": first}, {"y": y2}, dtype, exact=True)
            areas.extend(kept)
            y3 = area(count, columns, dtype, how)
            Call("norm", dims, {**given, "add": add, "y": y3}).run()
            check("norm+add", f"{style} {count}x{columns} {how}", {"y": want + add.double()}, {"y": y3}, dtype)
            areas.extend(kept)
            dy, parts = rand(count, columns, dtype, how), min(count, 128)
            g = dy.double() * weight
            dx = inverse * (g - (g.mean(1, keepdim=True) if layer else 0) - n * (g * n).mean(1, keepdim=True)) + add.double()
            outs, outputs = [], []
            for _ in range(2):
                made, sums = area(count, columns, dtype, how), area(parts, columns, F32, "tight")
                biases = area(parts, columns, F32, "tight") if layer else None
                Call("norm_backward", dims, {**given, "dy": dy, "add": add, "dx": made, "sums": sums, "biases": biases}).run()
                outputs.append((made, sums))
            same = torch.equal(outputs[0][0], outputs[1][0]) and torch.equal(outputs[0][1], outputs[1][1])
            if not same:
                failed.append(f"norm_backward {style} {count}x{columns} {how}: does not repeat")
            pad = torch.zeros(up(count, parts) * parts, columns, device="cuda", dtype=F64)
            pad[:count] = dy.double() * n
            want = {"dx": dx, "sums": pad.view(-1, parts, columns).sum(0)}
            if layer:
                pad = pad.clone()
                pad[:count] = dy.double()
                want["biases"] = pad.view(-1, parts, columns).sum(0)
            check("norm_backward", f"{style} {count}x{columns} {how}", want, {"dx": made, "sums": sums, "biases": biases}, dtype)


def up(value, by):
    return (value + by - 1) // by


def sums():
    for count, columns, dtype, how in each([(5, 61), (300, 768), (2048, 2304)]):
        x, parts = rand(count, columns, dtype, how), min(count, 128)
        made = area(parts, columns, F32, "tight")
        Call("column_sums", {}, {"x": x, "sums": made}).run()
        pad = torch.zeros(up(count, parts) * parts, columns, device="cuda", dtype=F64)
        pad[:count] = x.double()
        want = pad.view(-1, parts, columns).sum(0)
        kept = made.clone()
        check("column_sums", f"{count}x{columns} {how}", {"sums": want}, {"sums": made}, dtype)
        for begins in (True, False):
            d = rand(1, columns, dtype, how)
            want = kept.double().sum(0, keepdim=True) + (0 if begins else d.double())
            Call("add_rows", {}, {"x": kept, "d": d}, begins=begins).run()
            check("add_rows", f"{parts}x{columns} {how}", {"d": want}, {"d": d}, dtype)
        y = area(count, columns, BF16, how)
        Call("cast", {}, {"x": x, "y": y}).run()
        check("cast", f"{count}x{columns} {how}", {"y": x}, {"y": y}, dtype, exact=True)
        y = area(count, columns, dtype, how)
        Call("copy", {}, {"x": x, "y": y}).run()
        check("copy", f"{count}x{columns} {how}", {"y": x}, {"y": y}, dtype, exact=True)
        seq = 5 if count % 5 == 0 else 8
        for kernel, shift in (("first", 0), ("last", seq - 1)):
            y = area(count // seq, columns, dtype, how)
            Call(kernel, {"seq": seq}, {"x": x, "y": y}).run()
            check(kernel, f"{count}x{columns} {how}", {"y": x[shift::seq]}, {"y": y}, dtype, exact=True)
        found = torch.zeros(1, dtype=torch.int64, device="cuda")
        both = {"y": area(3, columns, dtype, how).fill_(1), "x": x}  # 4 · 1 + 3: −∞ in the second, before its NaN
        Call("finite", {}, both, found=found).run()
        clean = found.item() == 0
        x[count - 1, 7], x[count - 2, columns - 1] = math.nan, -math.inf
        Call("finite", {}, both, found=found).run()
        if not clean or found.item() != 7:
            failed.append(f"finite {count}x{columns} {how}: {found.item()}")


def summed(data, skip):
    """What checksum makes of bytes that begin so far behind a multiple of 8, by numpy."""
    data = bytes(skip) + data
    words = numpy.frombuffer(data + bytes(-len(data) % 8), dtype="<u8")
    places = numpy.arange(1, 1 + len(words), dtype=numpy.uint64)
    return int(words.sum(dtype=numpy.uint64)), int((words * places).sum(dtype=numpy.uint64))


def checksums():
    whole = torch.randint(0, 256, (1, 3 << 20), dtype=torch.uint8, device="cuda")
    data = whole.cpu().numpy().tobytes()
    for begin, size in ((0, 3 << 20), (0, 1), (16, 7), (32, 8), (3, 100003), (8, 1000001), (50, 2000016 + 5), (1, 15), (6, 2), (7, 3)):
        total = torch.full((128,), 7, dtype=torch.int64, device="cuda")
        Call("checksum", {"bytes": size}, {"x": whole[:, begin:]}, found=total).run()
        blocks = min(64, -(-size // 65536))
        sums = tuple(sum(total[which:2 * blocks:2].tolist()) % 2**64 for which in (0, 1))
        if sums != summed(data[begin:begin + size], begin % 8) or (total[2 * blocks:] != 7).any():
            failed.append(f"checksum of {size} bytes at {begin}: {sums}")
    worst["checksum", "bytes", "sum"] = 0.0


def embeddings():
    for sequences, seq, columns, entries, dtype, how in each([(2, 9, 61, 40), (4, 150, 768, 90), (1, 1, 64, 7), (3, 1000, 128, 5000)]):
        count = sequences * seq
        ids, table, add, scale = ints(sequences, seq, entries), rand(entries, columns, dtype, how), rand(count, columns, dtype, how), 1.7
        factor, flat = torch.tensor(scale).to(dtype).double(), ids.flatten().long()
        y, position = area(count, columns, dtype, how), torch.arange(seq, device="cuda").repeat(sequences)
        Call("embedding", {"scale": scale}, {"ids": ids, "table": table, "y": y}).run()
        kept = areas[:]
        check("embedding", f"{count}x{columns} {how}", {"y": table.double()[flat] * factor}, {"y": y}, dtype)
        areas.extend(kept)
        if entries >= seq:
            y = area(count, columns, dtype, how)
            Call("embedding", {"seq": seq}, {"table": table, "add": add, "y": y}).run()
            check("embedding/positions", f"{count}x{columns} {how}", {"y": table.double()[position] + add.double()}, {"y": y}, dtype)
            areas.extend(kept)
        order = area(2, count, I32, "tight")
        Call("sort", {}, {"ids": ids, "order": order}).run()
        sorted, places = torch.sort(flat, stable=True)
        check("sort", f"{count}", {"order": torch.stack([sorted, places])}, {"order": order.clone()}, F32, exact=True)
        for grad in {dtype, F32}:
            for begins in (True, False):
                d, dy = rand(entries, columns, grad, how), rand(count, columns, dtype, how)
                want = torch.zeros(entries, columns, device="cuda", dtype=F64) if begins else d.double().clone()
                want.index_add_(0, flat, dy.double() * factor * (flat != 3)[:, None])
                start, made = d.clone(), []
                for _ in range(2):
                    d.copy_(start)
                    Call("embedding_backward", {"scale": scale, "padding": 3}, {"order": order, "dy": dy, "d": d}, begins=begins).run()
                    made.append(d.clone())
                if not torch.equal(*made):
                    failed.append("embedding_backward does not repeat")
                check("embedding_backward", f"{count}x{columns} {how} {grad}", {"d": want}, {"d": d}, dtype)
        if entries >= seq:
            d, dy = rand(entries, columns, dtype, how), rand(count, columns, dtype, how)
            want = torch.zeros(entries, columns, device="cuda", dtype=F64).index_add_(0, position, dy.double())
            Call("embedding_backward", {"seq": seq}, {"dy": dy, "d": d}).run()
            check("embedding_backward/positions", f"{count}x{columns} {how}", {"d": want}, {"d": d}, dtype)


ACTIVATIONS = {
    "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu, "relu": torch.relu, "tanh": torch.tanh,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


def gates():
    for count, columns, dtype, how in each([(5, 61), (200, 768)]):
        for name, function in ACTIVATIONS.items():
            x, upward, dy = rand(count, columns, dtype, how, 3), rand(count, columns, dtype, how), rand(count, columns, dtype, how)
            wide, other = x.double().requires_grad_(), upward.double().requires_grad_()
            label, dims, kept = f"{name} {count}x{columns} {how}", {"activation": name}, areas[:]
            made = function(wide)
            (dx,) = torch.autograd.grad(made, wide, dy.double(), retain_graph=True)
            dgate, dup = torch.autograd.grad(made * other, (wide, other), dy.double())
            y = area(count, columns, dtype, how)
            Call("activate", dims, {"x": x, "y": y}).run()
            check("activate", label, {"y": made}, {"y": y}, dtype)
            areas.extend(kept)
            y = area(count, columns, dtype, how)
            Call("gate", dims, {"gate": x, "up": upward, "y": y}).run()
            check("gate", label, {"y": made * other}, {"y": y}, dtype)
            areas.extend(kept)
            gradient = area(count, columns, dtype, how, dy)  # in place
            Call("activate_backward", dims, {"x": x, "dy": gradient, "dx": gradient}).run()
            check("activate_backward", label, {"dx": dx}, {"dx": gradient}, dtype)
            areas.extend(kept)
            gradient, first = area(count, columns, dtype, how, dy), area(count, columns, dtype, how)
            Call("gate_backward", dims, {"gate": x, "up": upward, "dy": gradient, "dgate": first, "dup": gradient}).run()
            check("gate_backward", label, {"dgate": dgate, "dup": dup}, {"dgate": first, "dup": gradient}, dtype)


def rotated(x, heads, dim, width, positions, inverse, factor):
    """Heads turned in float64, by angles that are fp32 as torch's."""
    angle = (positions.float()[:, None] * inverse[None]).double()
    cosine, sine = (angle.cos() * factor)[:, None], (angle.sin() * factor)[:, None]
    x = x.view(-1, heads, dim)
    first, second, rest = x[..., :width // 2], x[..., width // 2:width], x[..., width:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine, rest], -1).reshape(-1, heads * dim)


def ropes():
    for heads, kv, dim, width, dtype, how in each([(4, 2, 64, 64), (8, 8, 128, 128), (3, 1, 80, 32), (2, 2, 20, 10), (4, 1, 256, 256)]):
        seq = 37
        inverse = (10000 ** (-torch.arange(0, width, 2, device="cuda").double() / width)).float()
        for past, count in ((None, 74), (100000, 74), (5, 3)):
            positions = torch.arange(seq, device="cuda").repeat(2) if past is None else torch.full((count,), past + 7, device="cuda")
            dims = {"heads": heads, "kv": kv, "dim": dim, "style": "rms", "epsilon": 1e-6} | ({"seq": seq} if past is None else {"past": past})
            turn, label = (inverse.tolist(), 1.1), f"{heads}/{kv}x{dim} width {width} past {past} {how}"
            q, k = rand(count, heads * dim, dtype, how), rand(count, kv * dim, dtype, how)
            want = {role: rotated(m.double(), h, dim, width, positions, inverse, 1.1) for role, m, h in (("q", q, heads), ("k", k, kv))}
            start = q.clone(), k.clone()
            Call("rope", dims, {"q": q, "k": k}, past=7, turn=turn).run()
            kept = areas[:]
            check("rope", label, want, {"q": q, "k": k}, dtype)
            areas.extend(kept)
            want = {role: rotated(m.double(), h, dim, width, -positions, inverse, 1.1) for role, m, h in (("dq", start[0], heads), ("dk", start[1], kv))}
            q.copy_(start[0]), k.copy_(start[1])
            Call("rope_backward", dims, {"dq": q, "dk": k}, past=7, turn=turn).run()
            check("rope_backward", label, want, {"dq": q, "dk": k}, dtype)
            areas.extend(kept)
            q.copy_(start[0]), k.copy_(start[1])
            for style in ("rms", "gemma-rms"):
                heads_of = {"q": heads, "k": kv}
                weights = {role: rand(1, dim, dtype, how) for role in "qk"}
                x = {role: m.double().clone().requires_grad_() for role, m in (("q", q), ("k", k))}
                w = {role: weights[role].double().clone().requires_grad_() for role in "qk"}
                y, outs = {}, {}
                for role in "qk":
                    head = x[role].view(count, -1, dim)
                    normed = head * (head.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * (w[role] + (style == "gemma-rms"))
                    y[role] = rotated(normed.reshape(count, -1), heads_of[role], dim, width, positions, inverse, 1.1)
                    outs[role] = area(count, heads_of[role] * dim, dtype, how)
                given = {"q": q, "k": k, "qweight": weights["q"], "kweight": weights["k"]}
                Call("qknorm", dims | {"style": style}, {**given, "yq": outs["q"], "yk": outs["k"]}, past=7, turn=turn).run()
                held = areas[:]
                check("qknorm", f"{style} {label}", y, outs, dtype)
                areas.extend(held)
                slopes = {role: rand(count, heads_of[role] * dim, dtype, how) for role in "qk"}
                want, parts = {}, min(count, 74)
                for role in "qk":
                    dx, dw = torch.autograd.grad(y[role], (x[role], w[role]), slopes[role].double())
                    want["d" + role], want[role + "sums"] = dx, dw
                sums = {role: area(parts, dim, F32, "tight") for role in "qk"}
                Call("qknorm_backward", dims | {"style": style}, {**given, "dq": slopes["q"], "dk": slopes["k"], "qsums": sums["q"], "ksums": sums["k"]}, past=7, turn=turn).run()
                got = {"dq": slopes["q"], "dk": slopes["k"], "qsums": sums["q"].double().sum(0, keepdim=True).float(), "ksums": sums["k"].double().sum(0, keepdim=True).float()}
                check("qknorm_backward", f"{style} {label}", want, got, dtype)
                areas.extend(kept)
            areas.clear()


def losses():
    for sequences, seq, vocab, dtype, how in each([(2, 9, 61), (3, 50, 5000), (1, 7, 20001)]):
        for cap in (0, 5.0):
            count, width = sequences * seq, up(up(vocab, 3), 8) * 8
            dims = {"sequences": sequences, "seq": seq, "micro_batches": 3} | ({"cap": cap} if cap else {})
            logits, labels = rand(count, vocab, dtype, how, 4), ints(sequences, seq, vocab)
            labels[0, 1] = -100
            target = torch.full((sequences, seq), -100, device="cuda")
            target[:, :-1] = labels[:, 1:]
            wide = logits.double().requires_grad_()
            limited = cap * torch.tanh(wide / cap) if cap else wide
            mean = torch.nn.functional.cross_entropy(limited, target.flatten().long())
            (gradient,) = torch.autograd.grad(mean / 3, wide)
            sums, lse, loss, counted = area(count, 3, F32, "tight"), area(count, 1, F32, "tight"), area(1, 1, F32, "tight"), area(1, 1, F32, "tight")
            for first in range(0, vocab, width):
                Call("softmax_sums", dims | {"first": first}, {"x": logits[:, first:first + width], "labels": labels, "sums": sums}).run()
            Call("loss", dims, {"sums": sums, "labels": labels, "lse": lse, "loss": loss}).run()
            Call("count", dims, {"labels": labels, "y": counted}).run()
            for first in range(0, vocab, width):
                Call("loss_backward", dims | {"first": first}, {"x": logits[:, first:first + width], "lse": lse, "labels": labels, "counted": counted}).run()
            want = {"lse": limited.logsumexp(1, keepdim=True), "loss": mean.view(1, 1), "x": gradient, "counted": torch.tensor([[(target >= 0).sum()]], device="cuda")}
            check("loss", f"{count}x{vocab} cap {cap} {how}", want, {"lse": lse, "loss": loss, "x": logits, "counted": counted}, dtype)
        x = rand(7, vocab, dtype, how, 40)
        x[1, :] = 2  # all equal
        x[2, vocab - 1], x[2, vocab // 2] = 1000, 1000
        ids, want = area(7, 1, I32, "tight"), torch.tensor([(row == row.max()).nonzero()[0].item() for row in x], device="cuda")[:, None]
        Call("argmax", {}, {"x": x, "y": ids}).run()
        kept = areas[:]
        check("argmax", f"{vocab} {how}", {"y": want}, {"y": ids}, dtype, exact=True)
        areas.extend(kept)
        want = 30 * torch.tanh(x.double() / 30)
        Call("softcap", {"cap": 30}, {"x": x}).run()
        check("softcap", f"{vocab} {how}", {"x": want}, {"x": x}, dtype)


def decodes():
    for heads, kv, dim, positions, dtype, how in each([(4, 2, 64, 70), (20, 1, 128, 1300), (6, 6, 80, 513), (2, 1, 20, 90), (8, 4, 256, 600)]):
        for past, made in ((positions // 2, 3), (positions + 11, 5)):
            for cap in (0, 20.0):
                sequences, span, scale = 3, 512, dim ** -0.5
                q, keys, values = rand(sequences, heads * dim, dtype, how), area(sequences * positions, kv * dim, dtype, how), area(sequences * positions, kv * dim, dtype, how)
                written = min(positions, past + made + 1)
                for ring in (keys, values):
                    ring.view(sequences, positions, -1)[:, :written].copy_(torch.randn(sequences, written, kv * dim, device="cuda")) if ring.is_contiguous() else [
                        ring[s * positions:s * positions + written].copy_(torch.randn(written, kv * dim, device="cuda")) for s in range(sequences)]
                k = torch.stack([keys[s * positions:s * positions + written] for s in range(sequences)]).double().view(sequences, written, kv, dim).repeat_interleave(heads // kv, 2)
                v = torch.stack([values[s * positions:s * positions + written] for s in range(sequences)]).double().view(sequences, written, kv, dim).repeat_interleave(heads // kv, 2)
                scores = torch.einsum("shd,skhd->shk", q.double().view(sequences, heads, dim), k) * scale
                scores = cap * torch.tanh(scores / cap) if cap else scores
                want = torch.einsum("shk,skhd->shd", scores.softmax(-1), v).reshape(sequences, -1)
                parts, y = up(positions, span), area(sequences, heads * dim, dtype, how)
                dims = {"sequences": sequences, "heads": heads, "kv": kv, "dim": dim, "past": past, "scale": scale, "positions": positions, "span": span} | ({"cap": cap} if cap else {})
                twice = []
                for _ in range(2):
                    if parts == 1:
                        Call("attention_decode", dims, {"q": q, "keys": keys, "values": values, "y": y}, past=made).run()
                    else:
                        room = area(parts * sequences, heads * (dim + 2), F32, "tight")
                        Call("attention_decode", dims, {"q": q, "keys": keys, "values": values, "parts": room}, past=made).run()
                        Call("attention_join", {"heads": heads, "dim": dim, "parts": parts}, {"parts": room, "y": y}).run()
                    twice.append(y.clone())
                if not torch.equal(*twice):
                    failed.append(f"attention_decode {heads}/{kv}x{dim} {written} of {positions} {how}: does not repeat")
                check("attention_decode", f"{heads}/{kv}x{dim} {written} of {positions} {how}", {"y": want}, {"y": y}, dtype)
        count = 50
        y, dy, delta = rand(count, heads * dim, dtype, how), rand(count, heads * dim, dtype, how), area(count, heads, F32, "tight")
        Call("attention_delta", {"heads": heads, "dim": dim}, {"y": y, "dy": dy, "delta": delta}).run()
        check("attention_delta", f"{heads}x{dim} {how}", {"delta": (y.double() * dy.double()).view(count, heads, dim).sum(-1)}, {"delta": delta}, dtype)
        sequences, seq, ring = 2, 40, 30
        k, v = rand(sequences * seq, kv * dim, dtype, how), rand(sequences * seq, kv * dim, dtype, how)
        keys, values = area(sequences * ring, kv * dim, dtype, how), area(sequences * ring, kv * dim, dtype, how)
        Call("cache", {"sequences": sequences, "positions": ring, "seq": seq}, {"k": k, "v": v, "keys": keys, "values": values}).run()
        places = torch.arange(seq - ring, seq, device="cuda")
        want = {role: torch.zeros(sequences * ring, kv * dim, device="cuda", dtype=dtype) for role in ("keys", "values")}
        for s in range(sequences):
            want["keys"][s * ring + places % ring], want["values"][s * ring + places % ring] = k[s * seq + places], v[s * seq + places]
        check("cache", f"{kv}x{dim} {how}", want, {"keys": keys, "values": values}, dtype, exact=True)


def updates():
    for count, columns, dtype, how in each([(5, 61), (1, 768), (700, 2048)]):
        for mixed in ((False, True) if dtype == F32 else (False,)):
            uses = [rand(count, columns, dtype, how) for _ in range(3)]
            for used in (uses[:1], uses):
                gradient = sum(use.double() for use in used)
                made = []
                for _ in range(2):
                    y = area(1, 1, F32, "tight")
                    Call("square", {}, {"x": uses[0], "y": y}, uses=used).run()
                    made.append(y.clone())
                kept = areas[:]
                check("square", f"{count}x{columns} {how} {len(used)} uses", {"y": gradient.square().sum().view(1, 1)}, {"y": y}, F32 if len(used) == 1 else dtype)
                areas.extend(kept)
                if not torch.equal(*made):
                    failed.append("square does not repeat")
                step, rate, beta1, beta2, epsilon, decay = 3, 1e-2, 0.9, 0.95, 0.1, 0.1
                total, clip = area(1, 1, F32, "tight", gradient.square().sum().view(1, 1)), 0.7
                factor = min(1, clip / (gradient.square().sum().sqrt().item() + 1e-6))
                weight = rand(count, columns, BF16 if mixed else dtype, how)
                master = rand(count, columns, F32, how) if mixed else None
                mean, square = rand(count, columns, dtype, how), rand(count, columns, dtype, how).abs_()
                for kernel in ("adamw", "sgd"):
                    start, g = (master if mixed else weight).double(), gradient * factor
                    if kernel == "adamw":
                        m, s = beta1 * mean.double() + (1 - beta1) * g, beta2 * square.double() + (1 - beta2) * g * g
                        value = start * (1 - rate * decay) - rate / (1 - beta1**step) * m / (s.sqrt() / math.sqrt(1 - beta2**step) + epsilon)
                        settings = (1 - rate * decay, rate / (1 - beta1**step), 1 - beta1, beta2, 1 - beta2, math.sqrt(1 - beta2**step), epsilon, clip, decay)
                        want = {"weight": value, "mean": m, "square": s}
                    else:
                        value, settings = start - rate * (g + decay * start), (0, rate, 0, 0, 0, 0, 0, clip, decay)
                        want = {"weight": value}
                    if mixed:
                        want["master"] = value
                    operands = {"gradient": uses[0], "total": total, "master": master, "weight": weight, "mean": mean, "square": square}
                    Call(kernel, {}, operands, uses=used, settings=settings).run()
                    kept = areas[:]
                    check(kernel + ("/mixed" if mixed else ""), f"{count}x{columns} {how} {len(used)} uses", want, operands, dtype)
                    areas.extend(kept)
                areas.clear()


def seconds(calls):
    """Median of the time a call takes, sets of matrices in turn."""
    for call in calls:
        call()
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(20):
            calls[i % len(calls)]()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 20 / 1e3)
    return sorted(times)[3]


def copied(moved):
    """Seconds of a copy that moves so many bytes, as often behind itself as a kernel is timed."""
    size = moved // 8 // 4 * 4
    sets = [[torch.empty(size, device="cuda") for _ in range(2)] for _ in range(max(1, min(20, (1 << 28) // moved)))]
    return seconds([lambda to=to, from_=from_: to.copy_(from_) for to, from_ in sets])


def timings():
    """Each kernel's time, beside torch's copy of as many bytes as it moves (a small kernel is
    held up by its start and its end, and so is a small copy), and beside one of 2 GiB."""
    copy, small = (2 << 30) / copied(2 << 30), {}
    print(f"copy {copy / 1e12:.3f} TB/s")

    def line(name, moved, calls):
        took = seconds(calls)
        if moved not in small:
            small[moved] = copied(moved)
        print(f"{name:40} {took * 1e6:9.1f} us {moved / took / 1e12:6.3f} TB/s {small[moved] / took:5.2f} of a copy, {moved / took / copy:4.2f} of one of 2 GiB")

    def new(r, c, dtype=BF16):
        return torch.randn(r, c, device="cuda").to(dtype)

    for count, columns in ((8192, 2048), (8192, 4096), (16384, 8192)):
        sets = []
        for _ in range(max(2, (1 << 28) // (count * columns * 2))):
            sets.append({"x": new(count, columns), "dy": new(count, columns), "add": new(count, columns), "weight": new(1, columns), "y": new(count, columns),
                         "dx": new(count, columns), "rstd": new(count, 1, F32).abs_(), "sums": new(128, columns, F32)})
        each, dims = count * columns * 2, {"style": "rms", "epsilon": 1e-6}
        for name, roles, moved in (("norm", "x weight y rstd", 2), ("norm", "x weight add y rstd", 3), ("norm_again", "x weight y rstd", 2), ("norm_backward", "dy x rstd weight add dx sums", 4)):
            line(f"{name} {'add ' if 'add' in roles.split() else ''}{count}x{columns}", moved * each, [Call(name, dims, {role: one[role] for role in roles.split()}).run for one in sets])
        line(f"column_sums {count}x{columns}", each, [Call("column_sums", {}, {"x": one["x"], "sums": one["sums"]}).run for one in sets])
        del sets
    whole, total = torch.randint(0, 256, (1, 1 << 30), dtype=torch.uint8, device="cuda"), torch.zeros(128, dtype=torch.int64, device="cuda")
    line("checksum 1 GiB", whole.nbytes, [Call("checksum", {"bytes": whole.nbytes}, {"x": whole}, found=total).run])
    del whole
    for count, columns in ((8192, 8192), (8192, 11008)):
        sets = [{role: new(count, columns) for role in ("gate", "up", "dy", "dgate", "dup", "y")} for _ in range(2)]
        for activation in ("silu", "gelu_tanh", "gelu"):
            dims = {"activation": activation}
            line(f"gate {activation} {count}x{columns}", 3 * count * columns * 2, [Call("gate", dims, one).run for one in sets])
            line(f"gate_backward {activation} {count}x{columns}", 5 * count * columns * 2, [Call("gate_backward", dims, one).run for one in sets])
        del sets
    for count, columns in ((8192, 8064), (8192, 8192)):
        sets = [{"x": new(count, columns), "labels": torch.randint(0, 100, (4, count // 4), device="cuda", dtype=I32), "sums": new(count, 3, F32), "lse": new(count, 1, F32) + 9, "counted": torch.full((1, 1), 100.0, device="cuda")} for _ in range(2)]
        for cap in ({}, {"cap": 30}):
            dims = {"sequences": 4, "seq": count // 4, "first": 8064, "micro_batches": 1} | cap
            line(f"softmax_sums {count}x{columns} {cap}", count * columns * 2, [Call("softmax_sums", dims, one).run for one in sets])
            line(f"loss_backward {count}x{columns} {cap}", 2 * count * columns * 2, [Call("loss_backward", dims, one).run for one in sets])
        del sets
    settings, rows_, columns = (0.99, 1e-9, 0.1, 0.95, 0.05, 0.5, 1e-8, 1.0, 0.1), 8192, 8192
    for kinds in ((BF16, BF16, None), (F32, F32, None), (F32, BF16, F32)):
        one = {"gradient": new(rows_, columns, kinds[0]), "weight": new(rows_, columns, kinds[1]), "master": new(rows_, columns, F32) if kinds[2] else None,
               "mean": new(rows_, columns, kinds[0]), "square": new(rows_, columns, kinds[0]).abs_(), "total": torch.ones(1, 1, device="cuda")}
        size, wide = rows_ * columns, 4 if kinds[0] == F32 else 2
        moved = size * (5 * wide + (2 * wide if not kinds[2] else 8 + 2))
        line(f"adamw {[str(kind)[6:] for kind in kinds]}", moved, [Call("adamw", {}, one, settings=settings).run])
        line(f"square {str(kinds[0])[6:]}", size * wide, [Call("square", {}, {"x": one["gradient"], "y": torch.ones(1, 1, device="cuda")}).run])
        del one
    for count, heads, kv, dim in ((8192, 32, 8, 64), (8192, 16, 8, 128)):
        inverse = [1.0 / (1 + i) for i in range(dim // 2)]
        sets = [{"q": new(count, heads * dim), "k": new(count, kv * dim), "dq": new(count, heads * dim), "dk": new(count, kv * dim), "qweight": new(1, dim), "kweight": new(1, dim),
                 "yq": new(count, heads * dim), "yk": new(count, kv * dim), "qsums": new(128, dim, F32), "ksums": new(128, dim, F32), "delta": new(count, heads, F32)} for _ in range(4)]
        dims, each = {"heads": heads, "kv": kv, "dim": dim, "seq": 2048, "style": "rms", "epsilon": 1e-6}, count * (heads + kv) * dim * 2
        for name, moved in (("rope", 2), ("qknorm", 2), ("qknorm_backward", 3)):
            line(f"{name} {count}x{heads}/{kv}x{dim}", moved * each, [Call(name, dims, one, turn=(inverse, 1.0)).run for one in sets])
        line(f"attention_delta {count}x{heads}x{dim}", 2 * count * heads * dim * 2, [Call("attention_delta", dims, {"y": one["q"], "dy": one["dq"], "delta": one["delta"]}).run for one in sets])
        del sets
    ids, order, table, y = torch.randint(0, 128256, (4, 2048), device="cuda", dtype=I32), torch.zeros(2, 8192, device="cuda", dtype=I32), new(128256, 2048), new(8192, 2048)
    line("sort 8192", 8192 * 12, [Call("sort", {}, {"ids": ids, "order": order}).run])
    line("embedding 8192x2048", 2 * y.nbytes, [Call("embedding", {}, {"ids": ids, "table": table, "y": y}).run])
    line("embedding_backward 8192x2048 adds", 3 * y.nbytes, [Call("embedding_backward", {}, {"order": order, "dy": y, "d": table}, begins=False).run])
    line("embedding_backward 8192x2048 begins", 3 * y.nbytes + table.nbytes, [Call("embedding_backward", {}, {"order": order, "dy": y, "d": table}).run])
    line("of which clearing 128256x2048", table.nbytes, [table.zero_])
    ids.copy_(torch.multinomial(1 / torch.arange(1, 128257, device="cuda"), 8192, replacement=True).view(4, 2048))  # as words are: some of them hundreds of times
    Call("sort", {}, {"ids": ids, "order": order}).run()
    line("embedding_backward 8192x2048 as words", y.nbytes + 2 * len(ids.unique()) * 4096, [Call("embedding_backward", {}, {"order": order, "dy": y, "d": table}, begins=False).run])
    sequences, positions = 16, 4096
    q, keys, values, parts = new(sequences, 32 * 128), new(sequences * positions, 8 * 128), new(sequences * positions, 8 * 128), new(8 * sequences, 32 * 130, F32)
    dims = {"sequences": sequences, "heads": 32, "kv": 8, "dim": 128, "past": positions, "scale": 0.1, "positions": positions, "span": 512}
    line("attention_decode 16 x 4096 x 8 x 128", 2 * keys.nbytes, [Call("attention_decode", dims, {"q": q, "keys": keys, "values": values, "parts": parts}).run])


def main():
    if "--sanitize" in sys.argv:
        at = sys.argv.index("--sanitize")
        sanitized(sys.argv[at + 1], sys.argv[at + 2:])
    print("seed", SEED, torch.cuda.get_device_name())
    parts = (norms, sums, checksums, embeddings, gates, ropes, losses, decodes, updates)
    named = [part for part in parts if part.__name__ in sys.argv]
    for part in named or parts:
        try:
            part()
        except Exception as error:  # the other parts still tell
            failed.append(f"{part.__name__}: {type(error).__name__}: {error}")
            areas.clear()
    for (name, dtype, role), error in sorted(worst.items()):
        print(f"{name:30} {dtype:9} {role:8} {error:.2e}")
    print(f"{len(worst)} outputs, {len(failed)} failed")
    for line in failed[:60]:
        print("FAILED", line)
    if "--time" in sys.argv:
        timings()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
