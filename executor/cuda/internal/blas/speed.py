"""Times the products of models' training steps beside torch's, in the same run:
python speed.py TEST [MODEL …]

TEST is package kernel's test binary (go test -c -tags cuda ./executor/cuda/internal/kernel),
which gives each product as a step does. Ours and torch's take turns; a time is the
median over the turns, of products one behind the other, launches included. torch's
makes the same: with a bias linear, in fp32 mm with out_dtype; and where ours adds,
an addition behind it. torch.matmul alone stands beside that."""

import json
import os
import statistics
import subprocess
import sys

import torch

TURNS = 9


def peer(product):
    """torch's product of matrices without gaps: all that ours makes, and matmul alone."""
    m, n, k = product["M"], product["N"], product["K"]
    kinds = {"BF16": torch.bfloat16, "F32": torch.float32}
    kind, out = kinds[product["In"]], kinds[product["Out"]]
    a = torch.randn((k, m) if product["Form"] == "tn" else (m, k), device="cuda").to(kind)
    b = torch.randn((n, k) if product["Form"] == "nt" else (k, n), device="cuda").to(kind)
    bias, add = torch.randn(n, device="cuda").to(kind), torch.randn(m, n, device="cuda").to(out)
    left, right = (a.T if product["Form"] == "tn" else a), (b.T if product["Form"] == "nt" else b)

    def same():
        if product["Bias"]:
            made = torch.nn.functional.linear(left, b, bias)
        elif out != kind:
            made = torch.mm(left, right, out_dtype=out)
        else:
            made = torch.matmul(left, right)
        return made + add if product["Add"] else made

    return same, lambda: torch.matmul(left, right)


def timed(function, times):
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    function()
    ends[0].record()
    for _ in range(times):
        function()
    ends[1].record()
    torch.cuda.synchronize()
    return ends[0].elapsed_time(ends[1]) / times


def main(binary, models):
    environment = dict(os.environ, DEVMAP_SPEED=" ".join(models))
    server = subprocess.Popen([binary, "-test.run", "^TestGPUSpeed$"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = server.stdout.readline()
    if not first.startswith("["):
        sys.exit(first + server.stdout.read())
    products = json.loads(first)

    def ours(index, times):
        server.stdin.write(f"{index} {times}\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: milliseconds a product and TFLOP/s, medians of {TURNS} turns")
    times = []  # of each product: ours, torch's, matmul alone
    for index, product in enumerate(products):
        count = max(5, int(5e-3 * 700e12 / work(product)))  # about 5 ms, of short ones too: the GPU goes from one process to the other
        same, alone = peer(product)
        turns = [(ours(index, count), timed(same, count), timed(alone, count)) for _ in range(TURNS + 1)]
        own, equals, alones = (list(each) for each in zip(*turns[1:]))
        if not (product["Bias"] or product["Add"] or product["Out"] != product["In"]):  # it is the same product, timed twice
            equals = alones = equals + alones
        times.append([statistics.median(each) for each in (own, equals, alones)])
        del same, alone
    server.stdin.close()
    server.wait()
    report(products, times)


def work(product):
    return 2 * product["M"] * product["N"] * product["K"]


def report(products, times):
    print(f"{'model':14s} {'times':>5s} {'product':27s} {'more':8s} {'ours':>14s} {'torch, the same':>15s} {'torch.matmul':>14s}  torch/ours  matmul/ours")
    for product, each in zip(products, times):
        more = " ".join(word for word, given in (("bias", product["Bias"]), ("add", product["Add"]), ("fp32", product["Out"] == "F32")) if given)
        own, same, alone = each
        print(f"{product['Model']:14s} {product['Count']:5d} {product['Form']} {product['M']:6d} × {product['N']:6d} × {product['K']:5d} {more:8s}"
              + "".join(f"  {time:7.4f} {work(product) / time * 1e-9:5.0f}" for time in each) + f"  {same / own:10.3f} {alone / own:12.3f}")
    for model in dict.fromkeys(product["Model"] for product in products):
        own, same, alone = (sum(product["Count"] * each[i] for product, each in zip(products, times) if product["Model"] == model) for i in range(3))
        whole = sum(product["Count"] * work(product) for product in products if product["Model"] == model) * 1e-9
        print(f"{model:14s} a step: ours {own:.2f} ms ({whole / own:.0f} TFLOP/s), torch {same:.2f} ms, torch.matmul {alone:.2f} ms: {same / own:.3f}, {alone / own:.3f}")
    print(f"least torch/ours {min(each[1] / each[0] for each in times):.3f}, least matmul/ours {min(each[2] / each[0] for each in times):.3f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["llama-3.2-1b", "qwen2.5-3b"])
