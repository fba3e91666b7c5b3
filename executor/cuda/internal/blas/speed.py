"""Times the products of models' training steps beside torch's, in the same run:
python speed.py TEST [MODEL …]

TEST is package kernel's test binary (go test -c -tags cuda ./executor/cuda/internal/kernel),
which gives each product as a step does. Ours and torch's take turns; a time is the
median over the turns, of products one behind the other, launches included. torch's
has a bias where ours has (linear); what ours adds to, torch's does without."""

import json
import os
import statistics
import subprocess
import sys

import torch

TURNS = 9


def peer(product):
    """torch's product, of matrices without gaps."""
    m, n, k = product["M"], product["N"], product["K"]
    kind = {"BF16": torch.bfloat16, "F32": torch.float32}[product["In"]]
    a = torch.randn((k, m) if product["Form"] == "tn" else (m, k), device="cuda").to(kind)
    b = torch.randn((n, k) if product["Form"] == "nt" else (k, n), device="cuda").to(kind)
    if product["Bias"]:
        bias = torch.randn(n, device="cuda").to(kind)
        return lambda: torch.nn.functional.linear(a, b, bias)
    a, b = (a.T if product["Form"] == "tn" else a), (b.T if product["Form"] == "nt" else b)
    return lambda: torch.matmul(a, b)


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
    mine, torchs = ([[] for _ in products] for _ in range(2))
    for index, product in enumerate(products):
        work = 2 * product["M"] * product["N"] * product["K"]
        times = max(5, min(50, int(5e-3 * 700e12 / work)))  # about 5 ms
        function = peer(product)
        timed(function, 3), ours(index, 3)
        for _ in range(TURNS):
            mine[index].append(ours(index, times))
            torchs[index].append(timed(function, times))
        del function
    server.stdin.close()
    server.wait()
    print(f"{'model':14s} {'times':>5s} {'product':27s} {'more':8s} {'ours':>14s} {'torch':>14s}  torch/ours")
    worst, sums = 2.0, {}
    for product, own, other in zip(products, mine, torchs):
        own, other = statistics.median(own), statistics.median(other)
        work = 2e-9 * product["M"] * product["N"] * product["K"]
        more = " ".join(word for word, given in (("bias", product["Bias"]), ("add", product["Add"]), ("fp32", product["Out"] == "F32")) if given)
        print(f"{product['Model']:14s} {product['Count']:5d} {product['Form']} {product['M']:6d} × {product['N']:6d} × {product['K']:5d} {more:8s} {own:7.4f} {work / own:6.0f} {other:7.4f} {work / other:6.0f}  {other / own:6.3f}{' <' if other / own < 0.97 else ''}")
        worst = min(worst, other / own)
        total = sums.setdefault(product["Model"], [0.0, 0.0, 0.0])
        for i, value in enumerate((own, other, work)):
            total[i] += product["Count"] * value
    for model, (own, other, work) in sums.items():
        print(f"{model:14s} a step {own:8.2f} ms ({work / own:.0f} TFLOP/s), torch {other:8.2f} ms ({work / other:.0f}): {other / own:.3f}")
    print(f"least torch/ours {worst:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["llama-3.2-1b", "qwen2.5-3b"])
